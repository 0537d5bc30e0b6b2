"""The routes of the REST API: one module for each group of the documentation.

Each module declares ``ROUTES``; ``soliton.api.app`` lists the modules.
"""
