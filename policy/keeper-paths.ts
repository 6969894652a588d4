/**
 * Directory of the image that only the keeper and the proxy may enter (mode 0710). In it lie `run`, a
 * tmpfs for their sockets, and `log`, the session's directory on the host for the decision log. Not below
 * /run, where a tmpfs would cover what the image made.
 */
export const KEEPER_DIR = "/var/lib/agentbox-keeper";
export const PROXY_SOCKET = `${KEEPER_DIR}/run/proxy.sock`;
export const CONTROL_SOCKET = `${KEEPER_DIR}/run/control.sock`;
export const DECISION_LOG_DIR = `${KEEPER_DIR}/log`;
