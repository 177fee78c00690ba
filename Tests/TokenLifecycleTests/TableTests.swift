import AssentCore
import Foundation
import Testing
import TokenTableSupport

/// One world for all rows of a suite, which run one after the other: each row changes what the relay does.
private struct World: SuiteTrait, TestScoping {
    @TaskLocal static var shared: ProviderWorld?
    let isAssent: Bool

    @concurrent func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @concurrent @Sendable () async throws -> Void
    ) async throws {
        let assent = isAssent ? try await AssentWorld() : nil
        let world = if let assent { assent.world } else { try await ScriptedProvider.world().0 }
        try await Self.$shared.withValue(world) { try await function() }
        await assent?.stop()
        await world.relay.stop()
    }
}

@Suite("The table of the token life cycle, with Assent's server", .serialized, World(isAssent: true))
struct AssentTableTests {
    @Test("Assent's server, over TLS, does what the row says", arguments: TokenTable.rows)
    func row(row: TokenTableRow) async throws {
        let world = try #require(World.shared)
        #expect(try await TokenTableRunner(world).differences(row) == [])
    }
}

@Suite("The table of the token life cycle, elsewhere", .serialized, World(isAssent: false))
struct ForeignTableTests {
    @Test(
        "A provider that answers no refresh twice does what the row says",
        arguments: TokenTable.rows)
    func row(row: TokenTableRow) async throws {
        let world = try #require(World.shared)
        #expect(try await TokenTableRunner(world).differences(row) == [])
    }
}

@Suite("The page about the token life cycle")
struct TablePageTests {
    @Test("docs/token-life-cycle.md has the table that the tests run")
    func page() throws {
        let page = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "docs/token-life-cycle.md")
        let text = try String(contentsOf: page, encoding: .utf8)
        let marks = ("<!-- table -->\n", "<!-- end of table -->\n")
        let start = try #require(text.range(of: marks.0)).upperBound
        let end = try #require(text.range(of: marks.1)).lowerBound
        // Write it anew with ASSENT_WRITE_TABLE=1 after a change of the rows.
        if ProcessInfo.processInfo.environment["ASSENT_WRITE_TABLE"] != nil {
            try Data((text[..<start] + TokenTable.markdown + text[end...]).utf8).write(to: page)
        } else {
            #expect(String(text[start..<end]) == TokenTable.markdown)
        }
    }

    @Test("No two rows ask the same")
    func distinct() {
        #expect(Set(TokenTable.rows.map(\.description)).count == TokenTable.rows.count)
    }

    @Test("Nothing that the table knows is without a row")
    func complete() {
        #expect(Set(TokenTable.rows.map(\.answer)) == Set(TokenTableRow.Answer.allCases))
        let states = Set(TokenTable.rows.map { "\($0.stored.rawValue), \($0.session.rawValue)" })
        for stored in TokenTableRow.Stored.allCases {
            for session in TokenTableRow.SessionState.allCases where stored != .none || session != .other {
                #expect(states.contains("\(stored.rawValue), \(session.rawValue)"))
            }
        }
    }
}
