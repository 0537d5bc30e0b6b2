"""Tools for those who write scripts: debugger, line editor, language server, talking to a node."""
