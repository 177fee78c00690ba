import AssentStore

/// How access tokens are found, and the proofs beside them spent: texts that are put together once for the file that
/// the server runs with, since nearly every call with a proof runs one of them.
struct AccessLookUps: Sendable {
    /// The texts for the installations of one app.
    private struct Texts: Sendable {
        let sealed: SQLTemplate
        let plain: SQLTemplate
    }

    private let realm: String

    /// By the app's id.
    private let ofApps: [String: Texts]

    /// For a client of the file, of which nothing is asked.
    private let ofOthers: SQLTemplate

    /// The texts for a file.
    init(_ configuration: OAuthProviderConfiguration) {
        realm = configuration.realm
        ofApps = configuration.apps.mapValues { app in
            Texts(sealed: Self.text(of: app, isSealed: true), plain: Self.text(of: app, isSealed: false))
        }
        ofOthers = Self.text(of: nil, isSealed: true)
    }

    /// How a token is found where a proof may be spent with it. A proof beside it is not spent by a plain request that
    /// must be sealed, nor by one through a session of payload encryption that proves nothing about who has made it.
    func lookUp(_ claims: AccessClaims, at now: Int64, isSealed: Bool = true) -> AccessLookUp {
        // The token is signed, so its client is known before anything is looked up.
        let texts = OAuthApp.id(ofInstance: claims.clientID).flatMap { ofApps[$0] }
        return AccessLookUp(
            values: claims.values(realm: realm, at: now), isOfClientItself: claims.isOfClientItself,
            text: (isSealed ? texts?.sealed : texts?.plain) ?? ofOthers)
    }

    /// The same put together from its parts; `app` is the one that the token's client is an installation of.
    static func composed(
        tokenID: String, grantID: String, realm: String, app: OAuthApp?, at now: Int64, isSealed: Bool = true
    ) -> ProofLookUp {
        let found = AccessClaims.found(tokenID: tokenID, grantID: grantID, realm: realm, at: now)
        return ProofLookUp(columns: found.columns, source: found.source) {
            let isServed = app?.versions.isServed("i.app_version") ?? "1 = 1"
            let isLetIn = (app?.closedKinds ?? []).reduce("1 = 1" as SQL) {
                "\($0) AND (s.id IS NULL OR s.kind <> \($1.rawValue))"
            }
            let mayOutlive = app?.client.scopes.contains(OAuthClient.offlineAccess) ?? true
            let goesOn: SQL = mayOutlive ? "1 = 1" : GrantRecord.hasItsSession
            let mayCome = isSealed ? "1 = 1" : app?.versions.mayCallPlainly("i.app_version") ?? "1 = 1"
            let isRevoked = AccessClaims.revoked(tokenID)
            return """
                \(isRevoked) = 0 AND \(isServed) AND \(isLetIn) AND \(mayCome) AND \(goesOn) AND \(GrantRecord.isValid)
                """
        }
    }

    /// No database takes a text with a NUL, so nothing that the file names is taken for one of these. They stand in the
    /// order of ``AccessClaims/values(realm:at:)`` and ``AccessLookUp/spending(_:)``.
    private static let standIns: [SQLValue] = [
        "\0token", "\0grant", "\0realm", .integer(.min), "\0proof", .integer(earliest), .integer(expiresAt),
    ]

    private static let earliest = Int64.min + 1
    private static let expiresAt = Int64.min + 2

    private static func text(of app: OAuthApp?, isSealed: Bool) -> SQLTemplate {
        let lookUp = composed(
            tokenID: "\0token", grantID: "\0grant", realm: "\0realm", app: app, at: .min, isSealed: isSealed)
        let insertion = ProofInsertion(name: "\0proof", earliest: earliest, expiresAt: expiresAt)
        return SQLTemplate(lookUp.spending(insertion).sql, standIns: standIns)
    }
}

/// How one access token is found.
struct AccessLookUp: ProofFinding {
    /// Those of ``AccessClaims/values(realm:at:)``.
    fileprivate let values: [SQLValue]

    /// ``AccessClaims/isOfClientItself``.
    fileprivate let isOfClientItself: Bool

    /// The text that spends a proof.
    fileprivate let text: SQLTemplate

    var reading: SQLStatement { AccessClaims.reading(values, isOfClientItself: isOfClientItself) }

    func spending(_ insertion: ProofInsertion) -> SQLStatement {
        .unlogged(
            text.with(
                values + [.text(insertion.name), .integer(insertion.earliest), .integer(insertion.expiresAt)]))
    }
}
