#!/usr/bin/env python3
"""llama.cpp's HTTP server on loopback, from the wheel xllamacpp: serve.py MODEL PORT TEMPLATE"""
import os
import signal
import sys

import xllamacpp

model, port, template = sys.argv[1:4]
settings = xllamacpp.CommonParams()
settings.model.path = model
settings.port = int(port)
alias = "smollm2-135m"
settings.model_alias = alias if isinstance(settings.model_alias, str) else {alias}
settings.hostnames = ["127.0.0.1"]
settings.n_parallel = 2
settings.n_ctx = 8192
settings.cpuparams.n_threads = 1
settings.use_jinja = settings.warmup = True
with open(template) as text:
    settings.chat_template = text.read()
server = xllamacpp.Server(settings)
signal.sigwait({signal.SIGTERM, signal.SIGINT})
os._exit(0)
