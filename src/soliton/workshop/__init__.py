"""Tools for authors of scripts: debugger, REPL, language server, deployment."""
