import AssentEnforcement
import AssentEngine
import AssentSigningProtocol
import HTTPTypes
import Hummingbird

/// Which routes exist, who may call them, how, with how much, and what answers them. ``RouteRunner`` holds each request
/// to its row before the handler sees it; the body's limit holds when the handler reads it.
///
/// These addresses have no row: the hosted pages (``SignInRoute``), which answer browsers, the gateway, whose routes
/// are in the configuration, and ``HealthRoutes`` and ``TrustFileRoute``, which know no realm.
enum RouteTable {
    /// AM's REST interface and ours beside it, below `/json` and the realm. `Accept-API-Version` must name a version
    /// that AM has had. Pages of the origins that a realm lists may call all of them.
    static let json = withoutPolicyObjects + policyObjects

    private static let withoutPolicyObjects: [Route<JSONRoutes, OAuthProvider>] = [
        // Journeys find the session themselves: it may be upgraded, replaced, or bound to a transaction.
        Route(RouteRule("authenticate", methods: [.post], caller: .anyone, bodyLimit: 256 << 10, cookie: .given)) {
            try await $0.authenticate.respond(to: $1)
        },

        // Free of the caller and of the realm: someone who has a session's token, and its key where it belongs to one,
        // may ask about that session and end it.
        // AM's clients name the session in the body, the query, a field or the cookie, and send this to the realm that
        // they are configured for, also about a session of another realm. A page of another origin may do that with the
        // cookie only if both realms list it.
        Route(RouteRule("sessions", methods: [.post], caller: .anyone, bodyLimit: 1 << 20, takesAction: true)) {
            try await $0.sessions.respond(to: $1)
        },

        // A session of another realm is refused as AM refuses it. About others may ask somebody with the role `pep` or
        // `admin`; the engine decides that. The roles `admin` and `auditor` read which policies there are.
        Route(
            RouteRule(
                "policies", methods: [.get, .post], caller: .session(foreign: .forbidden), door: .policySubject,
                bodyLimit: 1 << 20, takesAction: true, methodHint: PolicyObjectRoutes.place)
        ) {
            $1.request.method == .post
                ? try await $0.policies.respond(to: $1) : try $0.policies.objects.list(.policies, $1)
        },

        // Ours. The engine asks for the role `admin` and records refusals; for `bootstrap` it asks for the one-time
        // token.
        Route(
            RouteRule(
                "administration", methods: [.post], caller: .session(foreign: .unauthorized), door: .administration,
                bodyLimit: 16 << 10, takesAction: true)
        ) { try await $0.administration.respond(to: $1) },

        // Ours. Everybody sees and takes back what they have agreed to themselves.
        Route(
            RouteRule(
                "consents", methods: [.get, .post], caller: .session(foreign: .unauthorized), bodyLimit: 16 << 10)
        ) { try await ConsentRoutes.respond(to: $1) },

        // Ours. The engine asks for the role `auditor` or `admin` and records that somebody looked.
        Route(
            RouteRule("audit", methods: [.get], caller: .session(foreign: .unauthorized), door: .administration)
        ) {
            try await $0.administration.audit($1)
        },

        Route(RouteRule("serverinfo/*", methods: nil, caller: .anyone)) {
            .json(200, ServerInformation(cookie: $0.cookie, realm: $1.realm).json)
        },
    ]

    /// OAuth 2.0 and OpenID Connect, below `/oauth2` and the realm, by the paths that AM has. Pages of any origin may
    /// read the answers of endpoints that an app in a browser calls itself: a browser adds nothing to such a call by
    /// which the server would know the user, since the form or `Authorization` decides.
    static let oauth: [Route<OAuthRoutes, OAuthProvider>] = [
        // RFC 6749 §3.1. The session is used where there is one.
        Route(
            RouteRule(
                "authorize", methods: [.get, .post], caller: .optionalSession, door: .ownCode, bodyLimit: 64 << 10,
                cookie: .unguarded,
                crossOrigin: .listedOriginsForSessionChecks)
        ) { try await $0.authorize($1) },

        // RFC 6749 §3.2, RFC 7009 §2.
        Route(
            RouteRule(
                "access_token", methods: [.post], caller: .client, bodyLimit: 64 << 10, cookie: .unguarded,
                crossOrigin: .everyOrigin)
        ) { try await $0.tokens($1) },
        Route(
            RouteRule(
                "token/revoke", methods: [.post], caller: .client, bodyLimit: 64 << 10, cookie: .unguarded,
                crossOrigin: .everyOrigin)
        ) { try await $0.revoke($1) },

        // RFC 7662 §2.1. The client must have a secret.
        Route(
            RouteRule(
                "introspect", methods: [.post], caller: .client, bodyLimit: 64 << 10, cookie: .unguarded,
                crossOrigin: .sameOrigin)
        ) { try await $0.introspect($1) },

        // OpenID Connect Core §5.3.1.
        Route(
            RouteRule(
                "userinfo", methods: [.get, .post], caller: .accessToken, door: .userInfo, bodyLimit: 64 << 10,
                cookie: .unguarded, crossOrigin: .everyOrigin)
        ) { try await $0.userInfo($1) },

        // Ours. It gives a link, which signs in only who sends the form of its page.
        Route(
            RouteRule(
                "web_link", methods: [.post], caller: .accessToken, door: .webLink, bodyLimit: 16 << 10,
                cookie: .unguarded, crossOrigin: .sameOrigin)
        ) { try await $0.webLink($1) },

        Route(
            RouteRule(
                "connect/jwk_uri", methods: [.get], caller: .anyone, cookie: .unguarded, crossOrigin: .everyOrigin)
        ) { try await $0.keys($1) },

        // Ours: for services behind the gateway.
        Route(
            RouteRule(
                "connect/identity_keys", methods: [.get], caller: .anyone, cookie: .unguarded,
                crossOrigin: .everyOrigin)
        ) { try await $0.identityKeys($1) },
        // Ours. It is signed, and says nothing about anybody.
        Route(
            RouteRule("device_config", methods: [.get], caller: .anyone, cookie: .unguarded, crossOrigin: .sameOrigin)
        ) { try await $0.deviceConfiguration($1) },

        // Ours. An installation proves its key; anybody else may say something as well, so it is counted.
        Route(
            RouteRule(
                "reports", methods: [.post], caller: .anyone, bodyLimit: IntegrityReport.sizeLimit, cookie: .unguarded,
                crossOrigin: .sameOrigin)
        ) { try await $0.report($1) },

        // RFC 7591 §3, RFC 7592 §2. What an instance shows, the handlers and the engine verify: which of it, depends on
        // its app.
        Route(
            RouteRule(
                "register", methods: [.post], caller: .anyone, bodyLimit: 32 << 10, cookie: .unguarded,
                crossOrigin: .sameOrigin)
        ) { try await $0.register($1) },
        Route(
            RouteRule(
                "register/{id}", methods: [.get, .put, .delete], caller: .anyone, bodyLimit: 32 << 10,
                cookie: .unguarded, crossOrigin: .sameOrigin)
        ) { try await $0.registered($1) },

        // RP-Initiated Logout §2. The ID token says which session ends.
        Route(
            RouteRule(
                "connect/endSession", methods: [.get, .post], caller: .anyone, bodyLimit: 64 << 10, cookie: .unguarded)
        ) { try await $0.endSession($1) },

        Route(
            RouteRule(
                ".well-known/openid-configuration", methods: [.get], caller: .anyone, cookie: .unguarded,
                crossOrigin: .everyOrigin)
        ) { $0.metadata($1) },
    ]

    /// Transaction signing, below `/signing` and the realm. All that devices send is encrypted and signed
    /// (docs/transaction-signing.md).
    static let signing: [Route<SigningRoutes, SigningProvider>] =
        DeviceCall.allCases.map { device in
            Route(
                RouteRule(
                    String(device.path.dropFirst()), methods: [.post], caller: .device, bodyLimit: 64 << 10,
                    cookie: .unguarded)
            ) { try await $0.answer(device, $1) }
        } + [
            Route(RouteRule(IssuerPath.configuration.rawValue, methods: [.get], caller: .anyone)) {
                .json(200, bytes: try await $1.provider.door.configuration())
            },

            // The user's own; the engine asks for the role `admin` for others'.
            user(.invites, [.post], bodyLimit: 4 << 10) { try await $0.invite() },
            user(.invite, [.get, .delete]) { try await $0.invited() },
            user(.digits, [.post], bodyLimit: 4 << 10) { try await $0.enterDigits() },
            user(.containers, [.get]) { try await $0.containers() },
            user(.container, [.post], bodyLimit: 4 << 10) { try await $0.change() },
            user(.keys, [.post], bodyLimit: 4 << 10) { try await $0.changeKeys() },

            // JSON's escapes make a text up to six times longer.
            party(.transactions, [.post], bodyLimit: 128 << 10) { try await $0.create() },
            party(.transaction, [.get, .delete]) { try await $0.transaction() },

            // A relying party's, or the user's, an auditor's or an administrator's.
            Route(
                RouteRule(
                    IssuerPath.evidence.rawValue, methods: [.get],
                    caller: .ifAuthorized(
                        .confidentialClient(scope: "signing"), otherwise: .session(foreign: .unauthorized)))
            ) { try await $0.evidence($1) },
        ]

    /// Questions of gateways elsewhere, below `/enforcement` and the realm (docs/enforcement-wire.md).
    static let enforcement: [Route<EnforcementRoutes, EnforcementDesk>] = [
        // The handler reads no more than the client's group may send.
        gateway("decide", bodyLimit: EnforcementBounds.question(bodyBytes: EnforcementBounds.largestBody)) {
            try await $0.decide($1)
        },
        gateway("outcome", bodyLimit: OutcomeStatement.maximumBytes) { try await $0.outcome($1) },
    ]

    /// A row for gateways elsewhere.
    private static func gateway(
        _ path: String, bodyLimit: Int,
        _ answer: @escaping Route<EnforcementRoutes, EnforcementDesk>.Answer
    ) -> Route<EnforcementRoutes, EnforcementDesk> {
        Route(
            RouteRule(
                path, methods: [.post], caller: .confidentialClient(scope: EnforcementDesk.scope),
                bodyLimit: bodyLimit, cookie: .unguarded, crossOrigin: .sameOrigin),
            answer: answer)
    }

    /// The rows that show policies and what they are made of, except the list of policies.
    private static let policyObjects: [Route<JSONRoutes, OAuthProvider>] = PolicyObjectRoutes.Kind.allCases.flatMap {
        kind -> [Route<JSONRoutes, OAuthProvider>] in
        let one = Route(policyObject(kind.rawValue + "/{id}")) { (routes: JSONRoutes, call) in
            try routes.policies.objects.one(kind, call)
        }
        guard kind != .policies else { return [one] }
        return [
            Route(policyObject(kind.rawValue)) { (routes: JSONRoutes, call) in
                try routes.policies.objects.list(kind, call)
            }, one,
        ]
    }

    private static func policyObject(_ path: String) -> RouteRule {
        RouteRule(
            path, methods: [.get], caller: .session(foreign: .forbidden), door: .administration,
            methodHint: PolicyObjectRoutes.place)
    }

    /// A row of signing for users.
    private static func user(
        _ path: IssuerPath, _ methods: [HTTPRequest.Method], bodyLimit: Int = 0,
        _ answer: @escaping @Sendable (SigningUserRoutes) async throws -> Response
    ) -> Route<SigningRoutes, SigningProvider> {
        Route(
            RouteRule(path.rawValue, methods: methods, caller: .session(foreign: .unauthorized), bodyLimit: bodyLimit)
        ) { _, call in try await answer(SigningUserRoutes(call: call, caller: SigningCaller(try call.session))) }
    }

    /// A row of signing for relying parties.
    private static func party(
        _ path: IssuerPath, _ methods: [HTTPRequest.Method], bodyLimit: Int = 0,
        _ answer: @escaping @Sendable (SigningPartyRoutes) async throws -> Response
    ) -> Route<SigningRoutes, SigningProvider> {
        Route(
            RouteRule(
                path.rawValue, methods: methods, caller: .confidentialClient(scope: "signing"), bodyLimit: bodyLimit)
        ) { _, call in try await answer(SigningPartyRoutes(call: call, party: try call.party)) }
    }
}
