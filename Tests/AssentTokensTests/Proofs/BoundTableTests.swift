import AssentCore
import AssentTesting
import AssentTokens
import AssentVault
import Foundation
import Testing

@Suite("The page's table of bound tokens") struct BoundTableTests {
    private enum Stored: String, Sendable {
        case none = "none", good, threshold = "within the threshold", expired, unbound = "expired, not bound"

        var age: TimeInterval {
            switch self {
            case .none, .good: 0
            case .threshold: 550
            case .expired, .unbound: 601
            }
        }
    }

    private enum Key: String, Sendable {
        case none, there, lost, away = "provider not there", missing = "provider not configured", unused = "–"
    }

    private enum Answer: String, Sendable {
        case ok, nonce = "`use_dpop_nonce`, then ok", endless = "`use_dpop_nonce`, twice"
        case bearer = "ok, `token_type` Bearer", refused = "`invalid_dpop_proof`", none = "–"
    }

    private struct Row: Sendable {
        let stored: Stored
        var hasSession = true
        let key: Key
        let answer: Answer
    }

    private static let rows = [
        Row(stored: .none, key: .none, answer: .ok),
        Row(stored: .none, key: .none, answer: .nonce),
        Row(stored: .none, key: .none, answer: .endless),
        Row(stored: .none, key: .none, answer: .bearer),
        Row(stored: .none, key: .away, answer: .none),
        Row(stored: .good, key: .there, answer: .none),
        Row(stored: .threshold, key: .there, answer: .nonce),
        Row(stored: .threshold, key: .there, answer: .endless),
        Row(stored: .threshold, key: .there, answer: .bearer),
        Row(stored: .expired, key: .there, answer: .ok),
        Row(stored: .expired, key: .there, answer: .nonce),
        Row(stored: .expired, key: .there, answer: .endless),
        Row(stored: .expired, key: .there, answer: .bearer),
        Row(stored: .threshold, key: .there, answer: .refused),
        Row(stored: .expired, key: .there, answer: .refused),
        Row(stored: .good, key: .lost, answer: .ok),
        Row(stored: .good, hasSession: false, key: .lost, answer: .none),
        Row(stored: .expired, hasSession: false, key: .lost, answer: .none),
        Row(stored: .good, key: .away, answer: .none),
        Row(stored: .expired, key: .away, answer: .none),
        Row(stored: .good, key: .missing, answer: .none),
        Row(stored: .unbound, key: .unused, answer: .ok),
    ]

    @Test("Each row of the table is what happens")
    func table() async throws {
        let page = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent().appending(path: "docs/token-life-cycle.md")
        let lines = try String(contentsOf: page, encoding: .utf8).components(separatedBy: "\n")
        let start = try #require(lines.firstIndex(of: "<!-- bound -->"))
        let written = lines[(start + 1)...].prefix { $0.hasPrefix("|") }.dropFirst(2)
        var happened: [String] = []
        for row in Self.rows { happened.append(try await Self.line(row)) }
        #expect(Array(written) == happened, "\n\(happened.joined(separator: "\n"))")
    }

    private static func line(_ row: Row) async throws -> String {
        let provider = try FakeProvider()
        let (door, ring) = (ProofDoor(provider.clock), KeyRing())
        if row.stored == .unbound {
            _ = try await provider.signedIn().tokens()
        } else {
            provider.binds(door)
            let manager = try await provider.boundSignedIn(ring)
            if row.stored != .none { _ = try await manager.tokens() }
        }
        provider.clock.advance(by: row.stored.age)
        let before = try await provider.manager().storedTokens()
        try await prepare(row, provider, door, ring)
        let count = provider.exchanges.withLock { $0.count }
        let manager = row.key == .missing ? try provider.manager() : try provider.bound(ring)
        let returned: String
        do {
            returned = said(of: try await manager.tokens(), before)
        } catch let error as TokenError {
            returned = "error `\(error.code)`" + (error.signInReason.map { " (`\($0)`)" } ?? "")
        }
        let after = try await provider.manager().storedTokens()
        let sent = provider.exchanges.withLock { $0 }.dropFirst(count).compactMap(step)
        let kept =
            after == nil ? (before == nil ? "nothing" : "removed") : after == before ? "the same" : "the new ones"
        let cells = [
            row.stored.rawValue, row.hasSession ? "yes" : "no", row.key.rawValue, row.answer.rawValue, returned, kept,
            sent.isEmpty ? "nothing" : sent.joined(separator: ", "),
        ]
        return "| \(cells.joined(separator: " | ")) |"
    }

    private static func prepare(_ row: Row, _ provider: FakeProvider, _ door: ProofDoor, _ ring: KeyRing) async throws {
        if !row.hasSession, let name = await provider.store.names().first(where: { $0.hasPrefix("session.") }) {
            try await provider.store.update(name, to: nil, expected: .any)
        }
        switch row.key {
        case .lost: ring.change { $0.keys = [:] }
        case .away: ring.change { $0.failure = KeyProviderError(.unavailable, "It is not there.") }
        case .none, .there, .missing, .unused: break
        }
        switch row.answer {
        case .nonce: door.change { $0.nonce = "n" }
        case .endless: door.change { $0.isNeverContent = true }
        case .bearer: provider.change { $0.tokenType = "Bearer" }
        case .refused: provider.change { $0.tokenReply = { _ in .json(400, ["error": "invalid_dpop_proof"]) } }
        case .ok, .none: break
        }
    }

    private static func said(of tokens: TokenSet, _ before: TokenSet?) -> String {
        if tokens == before { return "the stored one" }
        guard tokens.isBound else { return "a new one, not bound" }
        guard let old = before?.keyThumbprint else { return "a new one, bound" }
        return "a new one, bound to \(tokens.keyThumbprint == old ? "the same" : "a new") key"
    }

    private static func step(_ exchange: InMemoryTransport.Exchange) -> String? {
        let url = URLText.withoutQuery(exchange.request.url ?? "")
        if url.hasSuffix("/authorize") { return "authorize" }
        if url.hasSuffix("/token/revoke") { return "revoke" }
        guard url.hasSuffix("/access_token") else { return nil }
        return exchange.form["grant_type"] == "refresh_token" ? "refresh" : "code"
    }
}
