-- Has wrk name the target in full, as a client of a proxy does. Arguments: the URL, and "close" for a connection a request.
local request_text

function init(args)
  local headers = { ["Host"] = args[1]:match("^http://([^/]+)") }
  if args[2] == "close" then headers["Connection"] = "close" end
  request_text = wrk.format("GET", args[1], headers)
end

function request()
  return request_text
end
