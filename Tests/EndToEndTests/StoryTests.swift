import Assent
import AssentCore
import Foundation
import HTTPTypes
import Testing

@testable import AssentCLI

@Suite("The story, on real sockets")
struct StoryTests {
    @Test("Every step comes out as it must, and no secret is where none may be")
    func wholeStory() async throws {
        let log = CollectingLog()
        try await World.run(logger: log.logger) { story in
            try await story.tell()
            let narration = story.narration
            #expect(narration.failures == [])
            #expect(narration.checkCount == 27)

            let search = SecretSearch(story.secrets)
            #expect(story.secrets.count == 6)
            let told = narration.events.map { "\($0)" }.joined(separator: "\n")
            #expect(search.found(in: Array(told.utf8)) == [])
            #expect(search.found(in: narration.json.serializedBytes()) == [])
            let page = SequencePage(title: "t", subtitle: "s", events: narration.events).html
            #expect(search.found(in: Array(page.utf8)) == [])
            let logged = log.lines.withLock { $0.joined(separator: "\n") }
            #expect(!logged.isEmpty)
            #expect(search.found(in: Array(logged.utf8)) == [])
            for place in ["server", "vault", "second", "bank.sqlite"] {
                let leaks = try search.found(below: story.world.directory + "/" + place)
                #expect(leaks == [], "\(place)")
            }

            // A search that finds nothing proves nothing unless it finds what is there.
            for (name, secret) in story.secrets {
                let planted = Array("log line: \(secret.reveal().suffix(14)) and more".utf8)
                #expect(name == "TOTP seed" || search.found(in: planted).contains(name))
                let encoded = Array(Base64URL.encode(secret.revealBytes()).utf8)
                #expect(search.found(in: encoded).contains(name))
            }
        }
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

    @Test("A client that pins other keys sends nothing")
    func wrongPins() async throws {
        try await World.run(logger: CollectingLog().logger) { story in
            var file = try #require(
                ClientFile(endpoints: story.world.endpoints, configuration: story.world.configuration))
            let others = try (1...2).map { try Pin(sha256: [UInt8](repeating: $0, count: 32)) }
            file.pins = file.pins.map { .init(host: $0.host, pins: others) }
            var configuration = file.configuration(vault: .memory)
            configuration.clock = story.clock
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
