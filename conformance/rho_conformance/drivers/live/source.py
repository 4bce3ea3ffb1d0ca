"""Where an input of the core came from: which upcall of a double, and which item of the scenario."""

from __future__ import annotations

from rho_conformance.drivers.corework.upcalls import STOPPED
from rho_core import inputs as i

_MODEL, _TOOL = frozenset({"ModelCall"}), frozenset({"ToolExecute"})
_PREPARE, _AUTHORIZE, _COMPACT = frozenset({"ToolPrepare"}), frozenset({"ToolAuthorize"}), frozenset({"Compact"})
SOURCE: dict[type, tuple[frozenset[str], tuple[str, ...]]] = {
    i.TextDelta: (_MODEL, ("delta",)),
    i.RawReasoning: (_MODEL, ("reasoning",)),
    i.SummaryDelta: (_MODEL, ("summary",)),
    i.CallDelta: (_MODEL, ("call_delta",)),
    i.ContextBlock: (_MODEL, ("context",)),
    i.UsageReported: (_MODEL, ("usage",)),
    i.GenerationTokensReported: (_MODEL, ("generation_tokens",)),
    i.WebSearched: (_MODEL, ("web_search",)),
    i.HostedTool: (_MODEL, ("hosted",)),
    i.TierFallback: (_MODEL, ("tier_fallback",)),
    i.PhysicalAttemptFailed: (_MODEL, ("physical_retry",)),
    i.ModelReturned: (_MODEL, ("return",)),
    i.ModelFailed: (_MODEL, ("fail", STOPPED)),
    i.ModelPanicked: (_MODEL, ("panic",)),
    i.SteerClaimed: (_MODEL, ("claim",)),
    i.SteerDelivered: (_MODEL, ("deliver",)),
    i.SteerReleased: (_MODEL, ("release",)),
    i.Prepared: (_PREPARE, ("prepared",)),
    i.PrepareFailed: (_PREPARE, ("prep_fail",)),
    i.Authorized: (_AUTHORIZE, ("authorize",)),
    i.Denied: (_AUTHORIZE, ("authorize",)),
    i.ToolProgress: (_TOOL, ("progress",)),
    i.ToolAsked: (_TOOL, ("ask",)),
    i.AskWithdrawn: (_TOOL, ("withdraw",)),
    i.ToolReturned: (_TOOL, ("return", "fail", "cancelled")),
    i.ToolPanicked: (_PREPARE | _AUTHORIZE | _TOOL, ("panic",)),
    i.CompactorReturned: (_COMPACT, ("return",)),
    i.CompactorFailed: (_COMPACT, ("fail", "interrupted", STOPPED)),
    i.CompactorPanicked: (_COMPACT, ("panic",)),
}
"""Input -> the upcalls it may come from, and the items it may be."""
