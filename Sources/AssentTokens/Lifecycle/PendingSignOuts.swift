import AssentCore
import Foundation

/// What the server must still be told of earlier sign-ins: kept sealed, told when the app asks, and never used for
/// anything else. Each entry stands alone, so one user's never meets another's.
struct PendingSignOuts: Sendable {
    /// One thing to tell.
    struct Entry: Sendable, Equatable {
        let id: String
        let step: SignOutResult.Step
        /// The refresh or access token, the ID token, or the session's token.
        let secret: Secret
        /// For ``SignOutResult/Step/revokeTokens``: whether it is a refresh token.
        let isRefreshToken: Bool
        /// The access token that belongs to a refresh token.
        var accessToken: Secret?
        /// The realm of a session.
        let realm: String
        /// The key that a session belongs to: it is kept until the server was told.
        var key: KeyBinding?
        let since: Date
    }

    /// How many are kept; the oldest goes first.
    static let limit = 16

    /// How long they are kept, in seconds: sessions and refresh tokens do not live longer without being used.
    static let lifetime: TimeInterval = 30 * 86_400

    let store: any SecretStore
    let name: String
    /// Has the keys of sessions that are to be ended.
    let keys: ProofKeys

    /// The entries, without those whose time is over.
    func load(now: Date) async throws -> [Entry] {
        try await stored().entries.filter { Self.isDue($0, now) }
    }

    /// All entries. What cannot be read counts as nothing: it is not worth failing for.
    private func stored() async throws -> (entries: [Entry], version: UInt64?) {
        guard let stored = try await store.value(name) else { return ([], nil) }
        let json = try? JSONValue.parse(stored.value.revealBytes())
        return ((json?["entries"]?.array ?? []).compactMap(Entry.init), stored.version)
    }

    private static func isDue(_ entry: Entry, _ now: Date) -> Bool {
        (-lifetime..<lifetime).contains(now.timeIntervalSince(entry.since))
    }

    /// Adds and removes entries, whatever others do at the same time. What goes, also because its time is over or there
    /// is no room for it, goes after the key of its session: else nobody would know of a key that is left.
    ///
    /// - Returns: why the key of one of `gone` is left. Its entry stays as well, and goes with it later. One that is
    ///   given up does so, too, but that is not the failure of who signs out now.
    @discardableResult
    func change(adding new: [Entry] = [], removing gone: [Entry] = [], now: Date) async throws -> TokenError? {
        while true {
            let (entries, version) = try await stored()
            let all = entries + new
            let told = Set(gone.map(\.id))
            let kept = all.filter { !told.contains($0.id) && Self.isDue($0, now) }.suffix(Self.limit)
            let keptIDs = Set(kept.map(\.id))
            let dropped = all.filter { !keptIDs.contains($0.id) && !told.contains($0.id) }
            let (left, failure) = await keys.discardKeys(of: gone, neededBy: Array(kept))
            let given = await keys.discardKeys(of: dropped, neededBy: Array(kept)).left
            let stays = keptIDs.union(left).union(given)
            // Keys that cannot be removed for ever do not make the record longer for ever.
            let rest = all.filter { stays.contains($0.id) }.suffix(2 * Self.limit)
            if rest.isEmpty, version == nil { return failure }
            let json: JSONValue = ["v": 1, "entries": .array(rest.map(\.json))]
            do {
                try await store.update(
                    name, to: rest.isEmpty ? nil : Secret(bytes: json.serializedBytes()),
                    expected: version.map { .exactly($0) } ?? .absent)
                return failure
            } catch let error as SecretStoreError where error.code == .versionMismatch {
                continue
            }
        }
    }
}

extension PendingSignOuts.Entry {
    /// What is to be told of these.
    static func all(
        tokens: TokenSet?, session: Session?, random: any RandomSource, now: Date
    ) -> [PendingSignOuts.Entry] {
        var entries: [PendingSignOuts.Entry] = []
        func add(
            _ step: SignOutResult.Step, _ secret: Secret, isRefreshToken: Bool = false, accessToken: Secret? = nil,
            realm: String = "", key: KeyBinding? = nil
        ) {
            entries.append(
                PendingSignOuts.Entry(
                    id: random.token(byteCount: 9), step: step, secret: secret, isRefreshToken: isRefreshToken,
                    accessToken: accessToken, realm: realm, key: key, since: now))
        }
        if let tokens {
            if let refreshToken = tokens.refreshToken {
                add(.revokeTokens, refreshToken, isRefreshToken: true, accessToken: tokens.accessToken)
            } else {
                add(.revokeTokens, tokens.accessToken)
            }
            // Where there is an AM session it is ended as such: by an ID token AM has ended a newer session than the
            // token's.
            if session == nil, let idToken = tokens.idToken { add(.endProviderSession, idToken.text) }
        }
        if let session, !session.token.isEmpty {
            add(.endSession, session.token, realm: session.realm, key: KeyBinding(session))
        }
        return entries
    }

    /// The session that is to be ended.
    var session: Session {
        var session = Session(token: secret, realm: realm, keyThumbprint: key?.thumbprint)
        session.keyName = key?.name
        return session
    }

    fileprivate var json: JSONValue {
        var object: JSONObject = [
            "id": .string(id), "step": .string(step.rawValue), "secret": .string(secret.reveal()),
            "refresh": .bool(isRefreshToken), "access": accessToken.map { .string($0.reveal()) } ?? .null,
            "realm": .string(realm),
            "since": .integer(Int64(since.timeIntervalSince1970.rounded(.down))),
        ]
        object["dpop"] = key?.json
        return .object(object)
    }

    fileprivate init?(_ json: JSONValue) {
        guard let id = json["id"]?.string, let step = json["step"]?.string.flatMap(SignOutResult.Step.init),
            let secret = json["secret"]?.string, let since = json["since"]?.integer
        else { return nil }
        self.init(
            id: id, step: step, secret: Secret(secret), isRefreshToken: json["refresh"]?.bool ?? false,
            accessToken: json["access"]?.string.map { Secret($0) }, realm: json["realm"]?.string ?? "",
            key: json["dpop"].flatMap(KeyBinding.init), since: Date(timeIntervalSince1970: Double(since)))
    }
}
