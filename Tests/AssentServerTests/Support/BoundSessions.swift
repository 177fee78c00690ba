import AssentCore
import Testing

@testable import AssentEngine
@testable import AssentServer

/// Sessions that belong to a key, and what clients send with them.
extension ServerFixture {
    /// A session of a key as a journey's end makes it, for tests of what comes after.
    func boundSession(_ username: String = "ana", to key: ProofKey) async throws -> String {
        let context = server.context
        let user = try #require(await Users(context).find(username: username, realm: "/alpha"))
        return try await Sessions(context).begin(
            userID: user.id, realm: "/alpha", limits: SessionLimits(), sender: .key(thumbprint: key.thumbprint)
        ).token.reveal()
    }

    /// A right proof for a request; with `session`, for one that presents its token.
    func proof(
        _ method: String, _ url: String, session: String? = nil, by key: ProofKey
    ) async throws -> (String, String) {
        let proof = try await key.proof(
            subject(method, url, token: session ?? ""), claims: { if session == nil { $0["ath"] = nil } })
        return ("DPoP", proof)
    }

    /// The fields of a request with a bound session and a right proof.
    func proved(
        _ method: String, _ url: String, session: String, by key: ProofKey
    ) async throws -> [(String, String)] {
        Self.session(session) + [try await proof(method, url, session: session, by: key)]
    }

    /// Goes through a journey whose requests have proofs, with an answer for each type of callback.
    ///
    /// - Parameters:
    ///   - query: which journey.
    ///   - session: the session that goes with each request.
    ///   - keys: the key of each request, in their order; the last one is that of all others too.
    ///   - answer: the answers.
    /// - Returns: the last answer of the server.
    /// - Throws: what `answer` throws, and what the connection does.
    func runProvedJourney(
        _ query: [(String, String)], session: String? = nil, by keys: ProofKey?...,
        answer: (String) throws -> JSONValue?
    ) async throws -> Answer {
        let url = json("authenticate")
        var keys = keys[...]
        func fields() async throws -> [(String, String)] {
            let key = keys.count > 1 ? keys.removeFirst() : keys.first ?? nil
            let own = session.map(Self.session) ?? []
            guard let key else { return own }
            return own + [try await proof("POST", url, session: session, by: key)]
        }
        var reply = try await send("POST", url + "?" + Self.query(query), try await fields())
        for _ in 0..<8 {
            guard reply.json["authId"] != nil else { return reply }
            let filled = try Self.filled(reply.json, answer).serializedBytes()
            reply = try await send(
                "POST", url, try await fields() + [("Content-Type", "application/json")], body: filled)
        }
        return reply
    }

    /// The answers of a user to the journeys of the fixture.
    func answers(of username: String) throws -> (String) throws -> JSONValue? {
        let account = try account(username)
        return { type in
            switch type {
            case "NameCallback": .string(username)
            case "PasswordCallback": .string(account.password.reveal())
            case "TextInputCallback": .string(try self.freshCode(username))
            case "ConfirmationCallback": 0
            default: nil
            }
        }
    }

    /// The query that asks for a journey by its name.
    static func service(_ journey: String) -> [(String, String)] {
        [("authIndexType", "service"), ("authIndexValue", journey)]
    }

    /// The query that asks for a transaction's journey.
    static func approval(_ id: String) -> [(String, String)] {
        [("authIndexType", "transaction"), ("authIndexValue", id)]
    }
}
