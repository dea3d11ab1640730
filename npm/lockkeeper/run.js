"use strict";

const { spawn } = require("node:child_process");
const os = require("node:os");

// find returns the path of a program in the package for this machine.
function find(program) {
  const name = `lockkeeper-${process.platform}-${process.arch}`;
  try {
    return require.resolve(`${name}/bin/${program}`);
  } catch {
    console.error(`lockkeeper: the package ${name} is not installed, and it has the program for this machine`);
    console.error(`next: npm install lockkeeper ${name}, without --omit=optional; Lockkeeper runs on Linux, on x64 and arm64`);
    process.exit(1);
  }
}

// run replaces this process by the program. A Node.js that cannot do that starts the program and
// passes on signals and the exit code.
module.exports = function run(program) {
  const path = find(program);
  const args = process.argv.slice(2);
  if (process.execve) {
    process.removeAllListeners("warning").on("warning", () => {}); // execve is marked as experimental
    process.execve(path, [program, ...args]);
  }
  const child = spawn(path, args, { stdio: "inherit", argv0: program });
  for (const signal of ["SIGINT", "SIGQUIT"]) {
    process.on(signal, () => {}); // a terminal sends them to the program, too
  }
  for (const signal of ["SIGTERM", "SIGHUP"]) {
    process.on(signal, () => child.kill(signal));
  }
  child.on("error", (err) => {
    console.error(`lockkeeper: starting ${path}: ${err.message}`);
    process.exit(126);
  });
  child.on("exit", (code, signal) => process.exit(signal ? 128 + os.constants.signals[signal] : code));
};
