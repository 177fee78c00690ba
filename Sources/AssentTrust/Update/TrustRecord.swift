import AssentCore

/// What the vault keeps: the newest trust file, and when it was last asked for a newer one.
struct TrustRecord: Sendable, Equatable {
    /// The name in the vault, and of the lease under which it changes.
    static let name = "trust"

    /// The file; `nil` when the shipped one is the newest.
    var file: String?

    /// When sources were asked last, in seconds since 1970.
    var asked: Int

    init(file: String? = nil, asked: Int = 0) { (self.file, self.asked) = (file, asked) }

    /// What was stored; `nil` when it cannot be read.
    init?(_ secret: Secret) {
        let limits = JSONLimits(bytes: TrustFile.limit * 2, depth: 2, values: 8)
        guard let object = try? JSONValue.parse(secret.revealBytes(), limits: limits).object,
            object["v"]?.integer == 1, let asked = object["asked"]?.integer.flatMap({ Int(exactly: $0) })
        else { return nil }
        if let file = object["file"] {
            guard let text = file.string else { return nil }
            self.file = text
        }
        self.asked = asked
    }

    var secret: Secret {
        let object = JSONObject(omittingNil: [
            "v": 1, "asked": .integer(asked), "file": file.map(JSONValue.string),
        ])
        return Secret(bytes: JSONValue.object(object).serializedBytes())
    }

    /// Whether sources may be asked again, so many seconds after the last time. A clock that was put back must not
    /// keep them from being asked.
    func isDue(at now: Int, after interval: Int) -> Bool { asked > now || now - asked >= interval }
}
