import AssentCore

/// Somebody who might send a request, for trials: nobody signs in.
package struct ImaginedCaller: Sendable {
    /// The user's name; `nil` for nobody.
    package var user: String?
    /// The level of the user's session.
    package var authLevel = 0
    /// The journey that has made it.
    package var journey: String?
    /// How old it is, in seconds.
    package var sessionAge: Int64 = 0
    /// The client's address.
    package var address: IPAddress?
    /// How long ago the user was in the network of ``address``, in seconds, by a journey of the session's level; `nil`
    /// for never.
    package var networkAge: Int64?
    /// The scopes of the access token; `nil` without one.
    package var scopes: Set<String>?

    /// Nobody.
    package init() {}

    /// What policies of a realm would know, at `now` seconds since 1970.
    package func facts(realm: String, now: Int64) -> PolicyFacts {
        let session = user.map { name in
            var properties = JSONObject()
            properties["Service"] = journey.map(JSONValue.string)
            return LiveSession(
                id: "trial", auditID: "trial",
                user: User(
                    id: "trial", realm: realm, username: name, isActive: true, roles: [], attributes: JSONObject(),
                    epoch: 0),
                realm: realm, authLevel: authLevel, createdAt: now - sessionAge, latestAccess: now, maxIdle: 1,
                expiresAt: now + 1, properties: properties)
        }
        var facts = PolicyFacts(
            user: session?.user, session: session, clientAddress: address, now: now, scopes: scopes)
        facts.sightings = address.map { _ in
            networkAge.map { [NetworkSighting(authLevel: authLevel, seenAt: now - $0)] } ?? []
        }
        return facts
    }
}
