import AssentCore

/// What the vault keeps: the newest trust file, which version it must be, and when it was last asked for a newer one.
struct TrustRecord: Sendable, Equatable {
    /// The name in the vault, and of the lease under which it changes. Each audience has a record of its own: that of
    /// another app or environment must not take away how far this one has come.
    static func name(for audience: String) -> String { "trust/" + RecordName.part(of: audience) }

    /// The file; `nil` when the shipped one is the newest.
    var file: String?

    /// When sources were asked last, in seconds since 1970.
    var asked: Int

    /// What has been in force, readable without the file; `nil` when only a shipped file has.
    var reached: ReachedVersion?

    init(file: String? = nil, asked: Int = 0, reached: ReachedVersion? = nil) {
        (self.file, self.asked, self.reached) = (file, asked, reached)
    }

    /// What was stored, also by a later release, as far as it is understood; `nil` when it is not a record at all.
    init?(_ secret: Secret) {
        let limits = JSONLimits(bytes: TrustFile.limit * 2, depth: 2, values: 16)
        guard let object = try? JSONValue.parse(secret.revealBytes(), limits: limits).object else { return nil }
        file = object["file"]?.string
        // Other programs may write to some stores: no number in one stops the app.
        asked = max(0, object["asked"]?.integer.flatMap { Int(exactly: $0) } ?? 0)
        if let audience = object["audience"]?.string,
            let version = object["version"]?.integer.flatMap({ Int(exactly: $0) }),
            TrustContent.versions.contains(version)
        {
            reached = ReachedVersion(audience: audience, version: version)
        }
    }

    var secret: Secret {
        let object = JSONObject(omittingNil: [
            "v": 1, "asked": .integer(asked), "file": file.map(JSONValue.string),
            "audience": (reached?.audience).map(JSONValue.string), "version": (reached?.version).map { .integer($0) },
        ])
        return Secret(bytes: JSONValue.object(object).serializedBytes())
    }

    /// Whether sources may be asked again, so many seconds after the last time. A clock that was put back must not
    /// keep them from being asked.
    func isDue(at now: Int, after interval: Int) -> Bool { asked > now || now - asked >= interval }
}

/// Names in a vault are shorter than audiences may be.
enum RecordName {
    static func part(of audience: String) -> String { Base64URL.encode(SHA2.sha256(Array(audience.utf8))) }
}

/// A version that was in force in an app: no older one may ever be again.
package struct ReachedVersion: Sendable, Hashable {
    package let audience: String
    package let version: Int

    package init(audience: String, version: Int) { (self.audience, self.version) = (audience, version) }
}
