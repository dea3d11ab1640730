#!/usr/bin/env node
require("../run.js")("lockkeeper-hook");
