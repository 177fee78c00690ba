package import AssentCore

/// What an app says that its probes have found in its process (docs/resources.md, "Reports to the server"). It is the
/// client's own word: who has the process can leave it out, or make it up.
package struct IntegrityReport: Sendable, Hashable {
    /// The most bytes that are read.
    package static let sizeLimit = 2048

    /// What was done with the calls of the process.
    package enum Calls: String, Sendable, Hashable, CaseIterable {
        case sent
        case refused
    }

    package let app: String
    package let version: String
    package let platform: String

    /// The client id of the installation that says so, and proves its key beside it; `nil` for nobody's.
    package let client: String?

    /// What was found; at least one kind.
    package let findings: [IntegrityKind: Calls]

    /// The claim `pe` of the proof that stands beside the body: base64url of its SHA-256.
    let claim: String

    /// Reads a report as it has come.
    ///
    /// - Throws: ``OAuthError`` `invalid_request` for JSON with a member that is missing, unknown, twice, or of another
    ///   type.
    package init(body: [UInt8]) throws(OAuthError) {
        let limits = JSONLimits(bytes: Self.sizeLimit, depth: 3, values: 32)
        guard let object = try? JSONValue.parse(body, limits: limits).object, object["v"]?.integer == 1 else {
            throw Self.malformed
        }
        func text(_ name: String) throws(OAuthError) -> String {
            guard let text = object[name]?.string, 1...128 ~= text.utf8.count,
                text.utf8.allSatisfy({ 0x20...0x7E ~= $0 })
            else { throw Self.malformed }
            return text
        }
        (app, version, platform) = (try text("app"), try text("version"), try text("platform"))
        client = object["client"] == nil ? nil : try text("client")
        findings = try Self.findings(object["findings"])
        // What is there twice is refused by the parser.
        guard object.members.count == (client == nil ? 5 : 6) else { throw Self.malformed }
        claim = Base64URL.encode(SHA2.sha256(body))
    }

    private static func findings(_ value: JSONValue?) throws(OAuthError) -> [IntegrityKind: Calls] {
        guard let list = value?.array, !list.isEmpty else { throw malformed }
        var findings: [IntegrityKind: Calls] = [:]
        for item in list {
            guard let object = item.object, object.members.count == 2,
                let kind = object["probe"]?.string.flatMap(IntegrityKind.init(rawValue:)),
                let calls = object["calls"]?.string.flatMap(Calls.init(rawValue:)),
                findings.updateValue(calls, forKey: kind) == nil
            else { throw malformed }
        }
        return findings
    }

    private static var malformed: OAuthError { .invalidRequest("The body is not a report of probes.") }

    /// The findings for the audit log, in a fixed order.
    var told: JSONValue {
        .array(
            IntegrityKind.allCases.compactMap { kind in
                findings[kind].map { ["probe": .string(kind.rawValue), "calls": .string($0.rawValue)] }
            })
    }
}
