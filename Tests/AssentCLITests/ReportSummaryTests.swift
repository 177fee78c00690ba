import AssentCore
import Testing

@testable import AssentCLI

@Suite("Reports of probes, counted for an operator")
struct ReportSummaryTests {
    private static func record(
        _ version: String, _ findings: [(String, String)], client: String? = nil, app: String = "pay",
        at: String = "2026-03-01T12:00:00Z"
    ) -> JSONValue {
        var detail: JSONObject = [
            "said": "by the client", "app": .string(app), "version": .string(version), "platform": "linux",
            "findings": .array(findings.map { ["probe": .string($0.0), "calls": .string($0.1)] }),
        ]
        detail["client"] = client.map(JSONValue.string)
        return ["event": "integrity.report", "realm": "/alpha", "at": .string(at), "detail": .object(detail)]
    }

    private static func lines(_ summary: ReportSummary) -> [String] {
        summary.rows.map { ReportSummary.line($0.kind, $0.count) }
    }

    @Test("What an installation has proved comes first and is counted by installation, whatever anybody sends")
    func counts() {
        var summary = ReportSummary(app: "pay")
        let anybody = Self.record("9", [("rooted", "sent")])
        for record in [
            anybody, anybody, anybody, Self.record("3.2.0", [("debugger", "refused")], client: "pay~1"),
            Self.record("3.2.0", [("debugger", "refused")], client: "pay~1", at: "2026-03-02T12:00:00Z"),
            Self.record("3.2.0", [("debugger", "refused"), ("preload", "sent")], client: "pay~2"),
            Self.record("3.2.0", [("debugger", "refused")], client: "other~1", app: "other"),
            ["event": "transaction.take", "detail": ["app": "pay", "findings": []]],
        ] {
            summary.add(record)
        }
        #expect(
            Self.lines(summary) == [
                "/alpha  pay 3.2.0 linux  debugger, calls refused: 3 reports, 2 installations, last 2026-03-02T12:00:00Z",
                "/alpha  pay 3.2.0 linux  preload, calls sent: 1 reports, 1 installation, last 2026-03-01T12:00:00Z",
                "/alpha  pay 9 linux  rooted, calls sent: 3 reports, not proved, last 2026-03-01T12:00:00Z",
            ])
        let first = summary.rows.first.map { ReportSummary.json($0.kind, $0.count) }
        #expect(first?["proved"] == true && first?["installations"] == 2 && first?["reports"] == 3)
    }

    @Test("Another app's are counted where none is named, and a text that a client has made up cannot move the cursor")
    func texts() {
        var summary = ReportSummary()
        summary.add(Self.record("1\u{1B}[2J", [("debugger", "sent")], app: "a\nb"))
        let lines = Self.lines(summary)
        #expect(lines.count == 1 && lines[0].allSatisfy { !$0.isNewline && $0 != "\u{1B}" }, "\(lines)")
    }
}
