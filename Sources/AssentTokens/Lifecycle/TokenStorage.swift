import AssentCore

/// Session, tokens and the id of a refresh that is under way, in the app's store. Each client of each issuer has its
/// own names.
struct TokenStorage: Sendable {
    struct Contents {
        var session: Session?
        var sessionVersion: UInt64?
        var tokens: TokenSet?
        var tokensVersion: UInt64?
    }

    let store: any SecretStore
    private let session: String
    private let tokens: String
    private let attempt: String
    private let keyName: String
    private let mark = Locked(SignInMark())
    let owner: String

    /// The name of what the server must still be told of earlier sign-ins.
    let pendingSignOuts: String

    init(_ store: any SecretStore, _ configuration: TokenConfiguration) {
        self.store = store
        let owner = Hex.encode(SHA2.sha256("\(configuration.issuer) \(configuration.clientID)".utf8).prefix(8))
        self.owner = owner
        session = "session.\(owner)"
        tokens = "tokens.\(owner)"
        attempt = "refresh.\(owner)"
        pendingSignOuts = "signout.\(owner)"
        keyName = "dpop.\(owner)"
    }

    /// The name whose lease makes a renewal, a sign-in or a sign-out the only one.
    var leaseName: String { tokens }

    /// The sign-in of this process's user. A step-up adds to it, and a sign-out ends it.
    var signIn: SignInMark { mark.withLock { $0 } }

    /// A sign-in begins to take the place of the one before, or has done so: what is read in between is nobody's. Or
    /// the user has signed out.
    func markSignIn() { mark.withLock { $0 = SignInMark() } }

    func load() async throws -> Contents {
        let session = try await loadSession()
        let tokens = try await loadTokens()
        return Contents(
            session: session?.session, sessionVersion: session?.version, tokens: tokens?.tokens,
            tokensVersion: tokens?.version)
    }

    func loadSession() async throws -> (session: Session, version: UInt64)? {
        try await storeErrorsAsTokenErrors {
            guard let stored = try await store.value(session) else { return nil }
            guard let session = Self.session(stored.value) else { throw Self.unreadable }
            return (session, stored.version)
        }
    }

    func loadTokens() async throws -> (tokens: TokenSet, version: UInt64)? {
        try await storeErrorsAsTokenErrors {
            guard let stored = try await store.value(tokens) else { return nil }
            guard let tokens = TokenSet(stored: stored.value) else { throw Self.unreadable }
            return (tokens, stored.version)
        }
    }

    /// Stores tokens if nobody else changed them since `version`; returns whether that was so.
    func save(_ tokens: TokenSet?, since version: UInt64?) async throws -> Bool {
        try await storeErrorsAsTokenErrors {
            do {
                try await store.update(
                    self.tokens, to: tokens?.stored, expected: version.map { .exactly($0) } ?? .absent)
                return true
            } catch let error as SecretStoreError where error.code == .versionMismatch {
                return false
            }
        }
    }

    /// Removes the session if nobody else changed it since `version`; returns whether that was so.
    func removeSession(since version: UInt64?) async throws -> Bool {
        try await storeErrorsAsTokenErrors {
            do {
                try await store.update(session, to: nil, expected: version.map { .exactly($0) } ?? .absent)
                return true
            } catch let error as SecretStoreError where error.code == .versionMismatch {
                return false
            }
        }
    }

    func save(_ session: Session?) async throws {
        _ = try await storeErrorsAsTokenErrors {
            try await store.update(self.session, to: session.map(Self.stored), expected: .any)
        }
    }

    func removeTokens() async throws {
        try await storeErrorsAsTokenErrors {
            try await store.update(tokens, to: nil, expected: .any)
            try await store.update(attempt, to: nil, expected: .any)
        }
    }

    /// The id of the attempt to use `refreshToken`, the same until ``forgetAttempt()``; stored before it is returned.
    ///
    /// - Returns: the id, and whether there was one already: an attempt of which nobody knows what came.
    func attempt(for refreshToken: Secret, random: any RandomSource) async throws -> (id: String, isRepeated: Bool) {
        try await storeErrorsAsTokenErrors {
            let digest = Base64URL.encode(SHA2.sha256(refreshToken.revealBytes()))
            if let stored = try await store.value(attempt), let json = try? JSONValue.parse(stored.value.revealBytes()),
                json["of"]?.string == digest, let id = json["id"]?.string
            {
                return (id, true)
            }
            let id = random.token(byteCount: 16)
            let record: JSONValue = ["id": .string(id), "of": .string(digest)]
            try await store.update(attempt, to: Secret(bytes: record.serializedBytes()), expected: .any)
            return (id, false)
        }
    }

    func forgetAttempt() async throws {
        _ = try await storeErrorsAsTokenErrors { try await store.update(attempt, to: nil, expected: .any) }
    }

    /// The name of the key for tokens that is noted, if there is one.
    func notedKeyName() async throws -> String? {
        try await storeErrorsAsTokenErrors {
            guard let stored = try await store.value(keyName) else { return nil }
            let json = try? JSONValue.parse(stored.value.revealBytes())
            guard json?["v"]?.integer == 1, let name = json?["name"]?.string else { throw Self.unreadable }
            return name
        }
    }

    /// The name of the key for tokens, noted before it is returned. No other store has the same, so that two that share
    /// a key provider never remove each other's key.
    func keyName(random: any RandomSource) async throws -> String {
        if let noted = try await notedKeyName() { return noted }
        return try await newKeyName(random: random)
    }

    /// Another name, noted in place of the one before.
    func newKeyName(random: any RandomSource) async throws -> String {
        let name = "dpop.\(owner).\(random.token(byteCount: 9))"
        let record: JSONValue = ["v": 1, "name": .string(name)]
        try await storeErrorsAsTokenErrors {
            _ = try await store.update(keyName, to: Secret(bytes: record.serializedBytes()), expected: .any)
        }
        return name
    }

    func forgetKeyName() async throws {
        _ = try await storeErrorsAsTokenErrors { try await store.update(keyName, to: nil, expected: .any) }
    }

    private static let unreadable = TokenError(
        .storageFailed, "The stored tokens cannot be read. A newer version of this library may have written it.",
        suggestion: "Use the newest version, or sign out and sign in again.")

    private static func stored(_ session: Session) -> Secret {
        let binding = KeyBinding(session)
        var json: JSONObject = [
            "v": binding == nil ? 1 : 2, "token": .string(session.token.reveal()),
            "successUrl": .string(session.successURL), "realm": .string(session.realm),
        ]
        json["dpop"] = binding?.json
        return Secret(bytes: JSONValue.object(json).serializedBytes())
    }

    private static func session(_ stored: Secret) -> Session? {
        guard let json = try? JSONValue.parse(stored.revealBytes()), let token = json["token"]?.string else {
            return nil
        }
        // The second form names a key: without it, or read as the first, it would be sent without a proof.
        let binding = json["dpop"].flatMap(KeyBinding.init)
        guard json["v"]?.integer == (binding == nil ? 1 : 2), (json["dpop"] == nil) == (binding == nil) else {
            return nil
        }
        var session = Session(
            token: Secret(token), successURL: json["successUrl"]?.string ?? "", realm: json["realm"]?.string ?? "",
            keyThumbprint: binding?.thumbprint)
        session.keyName = binding?.name
        return session
    }
}

/// Runs `body`, and throws what the store throws as a ``TokenError``.
func storeErrorsAsTokenErrors<Result>(_ body: () async throws -> Result) async throws -> Result {
    do {
        return try await body()
    } catch let error as SecretStoreError {
        throw TokenError(error: error)
    }
}

extension TokenError {
    init(error: SecretStoreError) {
        self.init(error.code == .busy ? .busy : .storageFailed, error.detail, storeError: error)
    }
}
