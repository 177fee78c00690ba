import Assent
import AssentCore
import AssentServer
import Foundation
import HTTPTypes
import Testing

@testable import AssentCLI
@testable import AssentDemo

/// What an installation does for the users whom it remembers, two at a time, against the real server.
@Suite("Two flows of one installation at once")
struct TwoFlowsTests {
    private static let pin = Secret("0042")

    private enum Flow: String {
        case logIn, authenticateStateless, implicitlyAuthenticate, signOut, deregister
    }

    /// Lets something happen when the token endpoint has granted something, before the app hears of it.
    private struct Meanwhile: HTTPMiddleware {
        let act = Locked<(@Sendable () async -> Void)?>(nil)

        /// How often it has granted something.
        let grants = Locked(0)

        func intercept(_ call: HTTPCall, next: HTTPPipeline.Next) async throws -> HTTPReply {
            let reply = try await next.send(call)
            guard call.request.path?.hasSuffix("/access_token") == true, reply.status == 200 else { return reply }
            grants.withLock { $0 += 1 }
            let once = act.withLock { act -> (@Sendable () async -> Void)? in
                defer { act = nil }
                return act
            }
            await once?()
            return reply
        }
    }

    private struct Desk: Sendable {
        let story: Story
        let app: Assent
        let user: String

        /// What comes of a flow, in the words of the table. What happens `meanwhile` comes in the midst of a journey.
        func outcome(of flow: Flow, meanwhile: @escaping @Sendable () async -> Void = {}) async -> String {
            do {
                switch flow {
                case .logIn: try await app.logIn(user, pin: TwoFlowsTests.pin)
                case .authenticateStateless: try await walk(meanwhile)
                case .implicitlyAuthenticate:
                    try await app.userClient.implicitlyAuthenticate(user, scopes: ["accounts"])
                case .signOut: _ = await app.signOut()
                case .deregister: _ = try await app.deregister(user)
                }
                return "goes on"
            } catch let error as ResourceError {
                return "\(error.number)"
            } catch {
                return "\(error)"
            }
        }

        private func walk(_ meanwhile: @escaping @Sendable () async -> Void) async throws {
            try await app.authenticateStateless("Login") { step in
                if step[NameCallback.self] != nil { await meanwhile() }
                step[NameCallback.self]?.name = story.world.account.username
                step[PasswordCallback.self]?.password = story.world.account.password.reveal()
                if step[TextInputCallback.self] != nil {
                    let code = try story.freshCode()
                    step[TextInputCallback.self]?.text = code
                }
                return .next
            }
        }
    }

    /// The app lets users in by a PIN, implicitly, and so that nothing is left of it.
    private static func allowed(_ file: String) -> String {
        let implicit = "        implicit: {scopes: [accounts]}\n"
        return RememberedUserTests.configured(file).replacing(implicit, with: implicit + "        stateless: true\n")
    }

    /// The rows of the table, without backquotes.
    private static func rows() throws -> [[String]] {
        let text = try String(contentsOf: World.package.appending(path: "docs/resources.md"), encoding: .utf8)
        let start = try #require(text.range(of: "<!-- table flows -->\n")).upperBound
        let end = try #require(text.range(of: "<!-- end of table flows -->")).lowerBound
        return text[start..<end].split(separator: "\n").dropFirst(2).map { line in
            line.dropFirst().dropLast().split(separator: "|", omittingEmptySubsequences: false).map {
                $0.trimmingCharacters(in: .whitespaces).replacing("`", with: "")
            }
        }
    }

    @Test("Each row of the table is what happens, and nothing that comes late is kept")
    func table() async throws {
        let rows = try Self.rows()
        #expect(Set(rows.map { $0[0] + $0[1] }).count == 14 && rows.allSatisfy { $0.count == 4 })
        try await World.run(logger: CollectingLog().logger, editing: Self.allowed) { story in
            let first = try await RememberedUserTests.installation(story, "two")
            _ = try await first.registration?.register()
            await first.shutdown()
            let meanwhile = Meanwhile()
            let app = try RememberedUserTests.open(story, "two", layers: [meanwhile])
            for row in rows {
                let user = try await Self.enrolled(app, story)
                try await Self.walk(row, Desk(story: story, app: app, user: user), meanwhile)
                _ = await app.signOut()
                app.tokens.implicit.end()
            }
            await app.shutdown()
        }
    }

    /// The user whom the app remembers, who is enrolled if there is none.
    private static func enrolled(_ app: Assent, _ story: Story) async throws -> String {
        if let container = try await app.device.containers().first { return container.userName }
        try await story.signIn(app, forcing: false)
        let container = try await app.device.enrol { _ in pin }
        _ = await app.signOut()
        return container.userName
    }

    private static func walk(_ row: [String], _ desk: Desk, _ meanwhile: Meanwhile) async throws {
        let (one, two) = (try #require(Flow(rawValue: row[0])), try #require(Flow(rawValue: row[1])))
        let second = Locked<Task<String, Never>?>(nil)
        let waits = row[2] == "waits"
        let act: @Sendable () async -> Void = {
            let task = Task { await desk.outcome(of: two) }
            second.withLock { $0 = task }
            // What waits for the first one ends after it.
            if !waits { _ = await task.value }
        }
        let before = meanwhile.grants.withLock { $0 }
        let ofFirst: String
        if one == .authenticateStateless {
            ofFirst = await desk.outcome(of: one, meanwhile: act)
        } else {
            meanwhile.act.withLock { $0 = act }
            ofFirst = await desk.outcome(of: one)
        }
        let begun = second.withLock { $0 }
        let task = try #require(begun, "\(row): nothing happened meanwhile: \(ofFirst)")
        let ofSecond = await task.value
        #expect(ofFirst == row[3] && ofSecond == (waits ? "goes on" : row[2]), "\(row): \(ofFirst), \(ofSecond)")
        let granted = meanwhile.grants.withLock { $0 } - before
        if waits { #expect(granted == 1, "\(row)") }

        let (session, tokens) = (try await desk.app.tokens.session(), try await desk.app.tokens.storedTokens())
        #expect(session == nil && tokens == nil, "\(row)")
        guard row[3] != "goes on" else { return }
        #expect(try await desk.app.user() == nil, "\(row)")
        let implicit = try? await desk.app.tokens.implicit.token(rejecting: nil)
        #expect(implicit == nil, "\(row)")
        #expect(try await desk.app.device.containers().isEmpty == (two == .deregister), "\(row)")
    }
}
