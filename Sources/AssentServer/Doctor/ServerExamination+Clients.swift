import AssentConfiguration
import AssentCore
import AssentEngine
import AssentJOSE

/// What other programs must know of the OpenID providers, and what is weak in how clients use them.
extension ServerExamination {
    static func providers(_ configuration: ServerConfiguration) -> [Diagnosis] {
        configuration.issuers(at: configuration.publicURL).map { realm, issuer in
            Diagnosis(.fine, "the issuer of realm \(realm) is \(issuer)")
        } + configuration.realms.flatMap { realm in realm.clients.flatMap { notes($0, of: realm) } }
            + configuration.realms.flatMap { realm in realm.apps.map { fact($0, of: realm) } }
    }

    private static func fact(_ app: OAuthApp, of realm: RealmConfiguration) -> Diagnosis {
        let demand =
            switch app.admission {
            case .token: "an initial access token"
            case .statement: "a software statement"
            case .open: "nothing (registration: open)"
            }
        return Diagnosis(
            .fine,
            "instances of the app \(app.id) of \(realm.name) register with \(demand), "
                + "\(app.maximumInstances) at most, and are deleted after \(app.days) days without use")
    }

    /// Where what concerns users' devices goes. The rest of the URL may be what lets a caller in.
    static func webhook(_ configuration: ServerConfiguration) -> [Diagnosis] {
        guard let webhook = configuration.webhook, let origin = try? Origin(webhook.url) else { return [] }
        guard configuration.realms.contains(where: { $0.signing != nil }) else {
            return [
                Diagnosis(
                    .note, "notify has nothing to send: no realm has the section signing, so no user has a device")
            ]
        }
        return [
            Diagnosis(
                .fine,
                "what concerns users' devices is sent to \(origin), signed (notify): each node must reach it, and a "
                    + "host in a private network must be in outbound.privateHosts")
        ]
    }

    /// Proxies that are everybody.
    static func proxies(_ configuration: ServerConfiguration) -> [Diagnosis] {
        configuration.trustedProxies.networks.filter { $0.length == 0 }.map {
            Diagnosis(
                .note,
                "trustedProxies has \($0.text), which is every address: each client can then say that it is another one, "
                    + "and no limit of one address holds. Name the proxies alone")
        }
    }

    /// Routes that no client can have an access token for: the scopes, of which a session needs none, are mistyped, or
    /// nobody has been given them.
    static func closedRoutes(_ configuration: ServerConfiguration) -> [Diagnosis] {
        (configuration.gateway?.routes ?? []).compactMap { route in
            guard route.isSenderConstrained || !route.scopes.isEmpty, case .policies(let name, _) = route.access,
                let realm = configuration.realms.first(where: { $0.name == name }),
                !(realm.clients + realm.apps.map(\.client)).contains(where: {
                    Set(route.scopes).isSubset(of: $0.scopes)
                })
            else { return nil }
            return Diagnosis(
                .note,
                "the route \(route.name) lets in no access token: no client of \(name) has its scopes "
                    + "[\(route.scopes.joined(separator: ", "))]. Give them to a client, or take them from the route")
        }
    }

    private static func notes(_ client: OAuthClient, of realm: RealmConfiguration) -> [Diagnosis] {
        var notes: [Diagnosis] = []
        if !client.requiresPKCE {
            notes.append(
                Diagnosis(
                    .note,
                    "the client \(client.id) of \(realm.name) goes without PKCE (requirePKCE: false): a stolen code is "
                        + "worth something to anyone who has its secret, so ask its maker for PKCE"))
        }
        if case .keyed(let keys) = client.kind { notes += Self.notes(keys, of: client, in: realm) }
        // A grant ends with its session, and nothing else need be a use of that session between two refreshes: a public
        // client, too, may be one whose services are not behind the gateway.
        let isRefreshed = client.grantTypes.contains(.refreshToken) && client.grantTypes.contains(.authorizationCode)
        if isRefreshed, client.accessTokenLifetime >= realm.sessionLimits.maxIdle,
            !client.scopes.contains("offline_access")
        {
            notes.append(
                Diagnosis(
                    .note,
                    "the client \(client.id) of \(realm.name) refreshes after \(client.accessTokenLifetime / 60) minutes, "
                        + "and an unused session ends after \(realm.sessionLimits.maxIdle / 60): its users sign in again "
                        + "unless accessTokenSeconds is less than sessions.idleMinutes"))
        }
        return notes
    }

    private static func notes(
        _ keys: ClientKeys, of client: OAuthClient, in realm: RealmConfiguration
    ) -> [Diagnosis] {
        let name = "the client \(client.id) of \(realm.name)"
        var notes: [Diagnosis] = []
        switch keys.source {
        case .listed(let set):
            let names = set.keys.map { $0.keyID ?? $0.thumbprint }.joined(separator: ", ")
            notes.append(Diagnosis(.fine, "\(name) proves itself by a key (private_key_jwt): \(names)"))
            if set.keys.contains(where: { $0.keyID == nil }) {
                notes.append(
                    Diagnosis(
                        .note,
                        "\(name) has a key without kid in jwks: an assertion that names a kid finds no such key, and is "
                            + "refused. Give each key the kid that the client names"))
            }
        case .fetched(let url):
            notes.append(
                Diagnosis(
                    .fine,
                    "\(name) proves itself by a key (private_key_jwt) of \(url), which the server fetches when the "
                        + "client calls: each node must reach it"))
        }
        if keys.algorithms.contains(.rs256) {
            notes.append(
                Diagnosis(
                    .note,
                    "\(name) may sign assertions with RS256, which the FAPI 2.0 profile forbids: leave it out of "
                        + "assertionAlgorithms as soon as the client can sign with ES256, PS256 or EdDSA"))
        }
        return notes
    }
}
