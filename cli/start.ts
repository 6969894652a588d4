import { enableCompileCache } from "node:module";
import { homedir } from "node:os";
import path from "node:path";
import { isUsableHome } from "./session/home.ts";

// Before the program is loaded, which is two megabytes of text.
if (isUsableHome(homedir())) enableCompileCache(path.join(homedir(), ".cache", "agentbox", "compile"));
await import("./main.ts");
