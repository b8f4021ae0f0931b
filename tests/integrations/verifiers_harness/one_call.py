"""A harness that asks once, in this process: the harnesses of verifiers fetch their programs with uv."""

import httpx
import verifiers.v1 as vf


class OneCallConfig(vf.HarnessConfig):
    pass


class OneCall(vf.Harness[OneCallConfig]):
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(self, ctx, trace, runtime, endpoint, secret, mcp_urls, data) -> vf.ProgramResult:
        _, prompt = self.resolve_prompt(data)
        messages = [message.model_dump(exclude_none=True) for message in prompt]
        async with httpx.AsyncClient(timeout=60) as client:
            reply = await client.post(
                f"{endpoint}/chat/completions",
                json={"model": ctx.model, "messages": messages},
                headers={"Authorization": f"Bearer {secret}"},
            )
        return vf.ProgramResult(exit_code=0 if reply.is_success else 1, stdout="", stderr=reply.text)


__all__ = ["OneCall"]
