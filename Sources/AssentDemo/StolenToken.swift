import Assent
import HTTPTypes

/// A copy of an access token that belongs to an installation's key: without that key it opens nothing.
struct StolenToken: Sendable {
    /// The token; `nil` where there is none, which is a check that fails.
    let token: AccessToken?

    /// What it is called.
    let name: String

    /// What the check says that fails without a token.
    let missing: String

    /// Has a thief try it.
    ///
    /// - Parameters:
    ///   - places: the gateway's paths, by what they are called.
    ///   - story: whose gateway it is.
    /// - Throws: what the exchanges throw.
    func present(at places: KeyValuePairs<String, String>, of story: Story) async throws {
        guard let token else { return story.check(missing, false) }
        story.remember("access token", token.value.signature)
        try await Thief.run(against: story) { thief in
            let bound: HTTPFields = [.authorization: "DPoP \(token.value.reveal())"]
            for (place, path) in places {
                story.refused(
                    "a copy of \(name) \(place), with a proof by the thief's key",
                    try await thief.prove(
                        HTTPRequest(.get, url: story.gateway + path, headerFields: bound), token: token.value),
                    "401 invalid_token")
            }
        }
    }
}
