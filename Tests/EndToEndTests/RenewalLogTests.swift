import Assent
import Foundation
import Testing

@testable import AssentCLI
@testable import AssentDemo

@Suite("What apps log when they renew tokens")
struct RenewalLogTests {
    @Test("Two apps on one vault renew in turn, each finds what the other has renewed, and neither logs a token")
    func inTurn() async throws {
        let log = CollectingLog()
        try await World.run(logger: log.logger) { story in
            let first = try story.makeAssent(vault: "shared")
            let second = try story.makeAssent(vault: "shared")
            try await story.signIn(first, forcing: false)
            var known = [try await first.tokens.tokens(), try await second.tokens.tokens()]
            #expect(known[0].accessToken == known[1].accessToken)
            let renewed = try await second.tokens.refresh()
            known.append(renewed)
            #expect(renewed.accessToken != known[0].accessToken)
            // What was refused here has been renewed there.
            let found = try await first.tokens.tokens(rejecting: known[0].accessToken)
            #expect(found.accessToken == renewed.accessToken)
            known.append(try await first.tokens.refresh())
            await first.shutdown()
            await second.shutdown()

            let text = log.lines.withLock { $0.joined(separator: "\n") }
            #expect(text.contains("journey step"), "the apps have not logged here")
            for tokens in known {
                for secret in [tokens.accessToken, tokens.refreshToken, tokens.idToken?.text] {
                    // The last part of a JWT is its own; the first ones are in other tokens too.
                    guard let part = secret?.reveal().split(separator: ".").last else { continue }
                    #expect(!text.contains(part))
                }
            }
        }
    }
}
