import Assent
import AssentCore
import AssentServer
import Foundation
import HTTPTypes
import Logging
import Testing

@testable import AssentCLI
@testable import AssentDemo

@Suite("The story, on real sockets")
struct StoryTests {
    @Test(
        "Every step comes out as it must, plainly and with every call of the apps sealed, and no secret is where none may be",
        arguments: [false, true])
    func wholeStory(isSealed: Bool) async throws {
        let log = CollectingLog()
        let witness = SecretWitness()
        let wire = SealedWire()
        try await World.run(
            logger: log.logger, watching: witness.watching, sealed: isSealed ? wire : nil,
            configuring: { try $0.rememberUsersOfStory() }
        ) { story in
            // The transport logs what it cannot reach, and nothing else.
            var nowhere = HTTPRequest(method: .get, scheme: "https", authority: "localhost:1", path: "/")
            nowhere.headerFields[.authorization] = "Bearer a-token-for-nobody-0123456789"
            await #expect(throws: HTTPTransportError.self) { try await story.transport.send(HTTPCall(nowhere)) }
            wire.clear()
            try await story.tell()
            story.judgeEvidence()
            #expect(!isSealed || wire.hasSealed(atLeast: 100), "\(wire)")
            let narration = story.narration
            #expect(narration.failures == [])
            #expect(narration.checkCount == 92)
            expectThiefRefused(narration.events)

            let kept = try keptSecrets(story.world.directory)
            let secrets = story.secrets + witness.secrets + kept
            let seen = Dictionary(grouping: secrets, by: \.name).mapValues(\.count)
            #expect(
                Set(seen.keys) == [
                    "password", "TOTP seed", "TOTP seed in base 32", "TOTP code", "session token", "authId",
                    "authorization code", "PKCE verifier", "access token", "refresh token", "ID token", "master key",
                    "TLS key", "vault key", "bootstrap token", "invite's code", "proof", "initial access token",
                    "registration token", "access or refresh token",
                ], "\(seen)")
            // Three apps signed in, and two of them refreshed.
            for name in ["session token", "authorization code", "PKCE verifier"] {
                #expect(seen[name, default: 0] >= 3, "\(name)")
            }
            for name in ["access token", "refresh token"] { #expect(seen[name, default: 0] >= 5, "\(name)") }
            #expect(seen["proof", default: 0] >= 10)
            #expect(seen["TOTP code", default: 0] >= 6 && seen["authId", default: 0] >= 10)

            let search = SecretSearch(secrets)
            func told() -> [[UInt8]] {
                [
                    Array(narration.events.map { "\($0)" }.joined(separator: "\n").utf8),
                    narration.json.serializedBytes(),
                    Array(SequencePage(title: "t", subtitle: "s", events: narration.events).html.utf8),
                ]
            }
            func logged() -> String { log.lines.withLock { $0.joined(separator: "\n") } }
            for text in told() { #expect(search.found(in: text) == []) }
            #expect(search.found(in: Array(logged().utf8)) == [])
            // The server, the apps and their transport have all logged there.
            for line in ["notice serving", "debug journey step", "debug signed out", "debug no connection"] {
                #expect(logged().contains(line), "\(line)")
            }
            // In the files there are only the keys that are kept in files, each in its own.
            let found = try search.found(below: story.world.directory)
            #expect(
                found == [
                    "server/master.key": ["master key"], "server/server.key": ["TLS key"],
                    "server/bootstrap-token": ["bootstrap token", "access or refresh token"],
                    "vault.key": ["vault key"],
                    "second.key": ["vault key"], "bound.key": ["vault key"], "kinds.key": ["vault key"],
                    Self.phoneKeys: ["vault key"],
                ], "\(found)")

            // A search that finds nothing proves nothing unless it finds what is there: all of it, where the apps log,
            // where the story is told, and in a piece of twelve bytes.
            let logger = try story.makeAssent(vault: "planted").configuration.logger
            for (name, secret) in secrets {
                let isText = String(validating: secret.revealBytes(), as: UTF8.self) != nil
                let text = isText ? secret.reveal() : Base64URL.encode(secret.revealBytes())
                logger.trace("planted", metadata: ["value": "\(text)"])
                narration.tell(.note(.app, "planted \(text)"))
                let piece = "xx \(text.suffix(text.count > 13 ? 13 : 12)) yy"
                #expect(search.found(in: Array(piece.utf8)).contains(name), "\(name)")
            }
            for text in told() { #expect(search.found(in: text) == Set(seen.keys)) }
            #expect(search.found(in: Array(logged().utf8)) == Set(seen.keys))
        }
    }

    /// What somebody with copies of all but the app's key has tried, and been told.
    private func expectThiefRefused(_ events: [Narration.Event]) {
        let refusals = [
            "the same request, copied from the wire: 401 invalid_dpop_proof",
            "the access token without a proof, as a bearer token: 401 invalid_token",
            "the access token with a proof by the thief's key: 401 invalid_token",
            "the refresh token with a proof by the thief's key: 400 invalid_client",
            "the same with an assertion by the thief's key: 400 invalid_client",
            "the session without a proof, at the gateway: 401 invalid_dpop_proof",
            "the session without a proof, to get tokens with it: 401 invalid_dpop_proof",
            "the registration token as a bearer token, to end the registration: 401 invalid_token",
            "the registration token with a proof by the thief's key: 401 invalid_token",
            "the initial access token, which is used up, with the thief's own key: 401 invalid_token",
            "a copy of the installation's token at the app's data, with a proof by the thief's key: 401 invalid_token",
            "a copy of her implicit token at her account, with a proof by the thief's key: 401 invalid_token",
            "a copy of her implicit token at the greeting, with a proof by the thief's key: 401 invalid_token",
        ]
        for refusal in refusals { #expect(events.contains(.check(refusal, passed: true)), "\(refusal)") }
        let answers = events.compactMap { event in
            if case .message(_, to: .thief, _, let refused) = event { refused } else { nil }
        }
        #expect(answers.count >= refusals.count && answers.allSatisfy(\.self))
    }

    /// Where the phone's program keeps its keys.
    private static let phoneKeys = "phone/state/assent/default/signing.key"

    /// The secrets that are kept in files: the server's, and the keys of the vaults.
    private func keptSecrets(_ directory: String) throws -> [(name: String, secret: Secret)] {
        func text(_ name: String) throws -> String {
            try String(contentsOfFile: directory + "/" + name, encoding: .utf8)
                .trimmingCharacters(in: .whitespacesAndNewlines)
        }
        let master = try #require(Data(base64Encoded: text("server/master.key")))
        let pem = try text("server/server.key").split(separator: "\n").filter { !$0.hasPrefix("-----") }.joined()
        let der = try #require(Data(base64Encoded: pem))
        // ECPrivateKey (RFC 5915 §3): version 1, then the key as 32 bytes.
        let key = try #require(der.range(of: Data([0x02, 0x01, 0x01, 0x04, 0x20])))
        var kept: [(name: String, secret: Secret)] = [
            ("master key", Secret(bytes: Array(master))),
            ("TLS key", Secret(bytes: Array(der[key.upperBound..<(key.upperBound + 32)]))),
            ("bootstrap token", Secret(try text("server/bootstrap-token"))),
        ]
        for vault in ["vault.key", "second.key", "bound.key", "kinds.key", Self.phoneKeys] {
            // The last key of the file, before the digest of all.
            let file = try #require(FileManager.default.contents(atPath: directory + "/" + vault))
            kept.append(("vault key", Secret(bytes: Array(file.dropLast(32).suffix(32)))))
        }
        return kept
    }

    @Test("A protected call works with the session cookie instead of a token")
    func sessionInsteadOfToken() async throws {
        try await World.run(logger: CollectingLog().logger) { story in
            let assent = try story.makeAssent()
            try await story.signIn(assent, forcing: false)
            let session = try #require(try await assent.tokens.session())
            #expect(try await story.plain(field("iPlanetDirectoryPro", session.token.reveal())) == 200)
            #expect(try await story.plain(field("Cookie", "iPlanetDirectoryPro=\(session.token.reveal())")) == 200)
            #expect(
                try await story.plain(field("Cookie", "iPlanetDirectoryPro=\(session.token.reveal().dropLast())x"))
                    == 401)
            await assent.shutdown()
        }
    }

    @Test("With a cookie name of the operator's own users sign in, approve and sign out as with AM's")
    func cookieName() async throws {
        try await World.run(logger: CollectingLog().logger, configuring: { $0.cookieName = "bankSession" }) { story in
            let assent = try story.makeAssent()
            try await story.signIn(assent, forcing: false)
            let session = try #require(try await assent.tokens.session()).token.reveal()
            #expect(try await story.plain(field("bankSession", session)) == 200)
            #expect(try await story.plain(field("Cookie", "bankSession=\(session)")) == 200)
            #expect(try await story.plain(field("iPlanetDirectoryPro", session)) == 401)
            let paid = try await assent.send(.post(story.transfers, json: Story.transfer)) { try story.answer(&$0) }
            #expect(paid.status == 201)
            #expect(await assent.signOut().undone.isEmpty)
            #expect(try await story.plain(field("bankSession", session)) == 401)
            await assent.shutdown()
        }
    }

    @Test("A client that pins other keys sends nothing")
    func wrongPins() async throws {
        try await World.run(logger: CollectingLog().logger) { story in
            var file = try #require(
                ClientFile(endpoints: story.world.endpoints, configuration: story.world.configuration))
            let others = try (1...2).map { try Pin(sha256: [UInt8](repeating: $0, count: 32)) }
            file.pins = file.pins.map { .init(host: $0.host, pins: others) }
            var configuration = file.configuration(vault: .memory)
            configuration.clock = story.clock
            configuration.leastLimit = story.world.leastLimit
            let assent = try Assent(configuration)
            let node = await assent.journey.start("Login")
            guard case .failure(let failure) = node else {
                Issue.record("a journey was started through a connection that is not pinned")
                return
            }
            #expect(failure.transportError?.code == .pinMismatch)
            await assent.shutdown()
        }
    }

    private func field(_ name: String, _ value: String) throws -> HTTPFields {
        HTTPFields([HTTPField(name: try #require(HTTPField.Name(name)), value: value)])
    }
}
