#!/bin/sh
# The yardstick of bench-startup: the same steps as the entrypoint, one process at a time, as a shell script
# would do them. Never part of the product.
# usage: reference-firewall.sh NAMES-FILE CRITICAL-FILE COMMAND…
set -eu
names=$1
critical=$2
shift 2

for tables in iptables ip6tables; do
  for chain in INPUT FORWARD OUTPUT; do "$tables" -P "$chain" DROP; done
done
for family in 4 6; do
  inet=inet
  [ "$family" = 4 ] || inet=inet6
  for set in literal learned cut; do ipset create "agentbox-$set-$family" hash:net,port family "$inet" timeout 0; done
done
resolver() { sed -n 's/^nameserver //p' /etc/resolv.conf; }
rules() {
  tables=$1 family=$2 reject=$3
  "$tables" -N AGENTBOX-OUT
  "$tables" -N AGENTBOX-IN
  "$tables" -I OUTPUT 1 -j AGENTBOX-OUT
  "$tables" -I INPUT 1 -j AGENTBOX-IN
  [ "$family" = 4 ] || "$tables" -A AGENTBOX-OUT -m rt -j REJECT --reject-with "$reject"
  "$tables" -A AGENTBOX-OUT -o lo -p udp -m addrtype ! --src-type LOCAL -j DROP
  "$tables" -A AGENTBOX-OUT -p tcp -m set --match-set "agentbox-cut-$family" dst,dst -j REJECT --reject-with tcp-reset
  "$tables" -A AGENTBOX-OUT -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT
  "$tables" -A AGENTBOX-OUT -o lo -j ACCEPT
  if [ "$family" = 6 ]; then
    for type in 133 135 136; do "$tables" -A AGENTBOX-OUT -p icmpv6 --icmpv6-type "$type" -j ACCEPT; done
    for type in 134 135 136; do "$tables" -A AGENTBOX-IN -p icmpv6 --icmpv6-type "$type" -j ACCEPT; done
  else
    for address in $(resolver) ${UPSTREAMS:-}; do
      for protocol in udp tcp; do "$tables" -A AGENTBOX-OUT -d "$address" -p "$protocol" --dport 53 -j ACCEPT; done
    done
  fi
  for set in literal learned; do
    "$tables" -A AGENTBOX-OUT -p tcp --dport 22 -m set --match-set "agentbox-$set-$family" dst,dst -j ACCEPT
  done
  for set in literal learned; do "$tables" -A AGENTBOX-OUT -m set --match-set "agentbox-$set-$family" dst,dst -j ACCEPT; done
  "$tables" -A AGENTBOX-OUT -p tcp -j REJECT --reject-with tcp-reset
  "$tables" -A AGENTBOX-OUT -j REJECT --reject-with "$reject"
  "$tables" -A AGENTBOX-IN -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT
  "$tables" -A AGENTBOX-IN -i lo -j ACCEPT
  "$tables" -A AGENTBOX-IN -p tcp -j REJECT --reject-with tcp-reset
  "$tables" -A AGENTBOX-IN -j REJECT --reject-with "$reject"
}
rules iptables 4 icmp-admin-prohibited
rules ip6tables 6 icmp6-adm-prohibited

while read -r name; do
  for address in $(dig +short A "$name"); do ipset -exist add agentbox-learned-4 "$address,tcp:443"; done
  for address in $(dig +short AAAA "$name"); do ipset -exist add agentbox-learned-6 "$address,tcp:443"; done
done <"$names"

while read -r name; do curl --silent --output /dev/null --max-time 10 "https://$name/"; done <"$critical"
if curl --silent --output /dev/null --max-time 1 http://198.51.100.1:9/; then
  echo "the canary can be reached" >&2
  exit 70
fi
exec setpriv --reuid 1000 --regid 1000 --clear-groups --bounding-set=-all --inh-caps=-all --ambient-caps=-all --no-new-privs -- "$@"
