"""The market page at ``/``: its text, style and script.

What lives here: the files. What does not: serving them (``soliton.matcher.rest.pages``). The script
uses what everybody can: ``/api/v1`` and the WebSocket stream.
"""
