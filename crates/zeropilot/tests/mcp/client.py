"""Asks a server of the Model Context Protocol with the official client and prints what it answers.

Called with the program and its arguments; questions are read from standard input, a JSON list of [tool, arguments].
"""

import asyncio
import json
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main():
    questions = json.load(sys.stdin)
    server = StdioServerParameters(command=sys.argv[1], args=sys.argv[2:])
    async with stdio_client(server) as (read, write):
        async with ClientSession(read, write) as session:
            greeting = await session.initialize()
            tools = await session.list_tools()
            answers = []
            for tool, arguments in questions:
                answer = await session.call_tool(tool, arguments)
                texts = [part.text for part in answer.content]
                answers.append({"texts": texts, "structured": answer.structuredContent, "is_error": answer.isError})
    names = [tool.name for tool in tools.tools]
    print(json.dumps({"server": greeting.serverInfo.name, "tools": names, "answers": answers}))


asyncio.run(main())
