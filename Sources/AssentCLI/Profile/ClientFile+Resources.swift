import Assent
import AssentConfiguration
import AssentCore

extension ClientFile {
    /// An origin of `resources` in the file.
    struct Resource: Sendable, Equatable {
        var origin: String

        /// What it gets: `accessToken`, `session`, `both` or `nothing`.
        var credential: String

        /// Whose access tokens it gets; the file says nothing of that where it is the user's alone.
        var kinds: Set<CallKind> = [.user]

        /// The same for the SDK.
        var access: ResourceAccess {
            switch credential {
            case "session": .session
            case "both": .both
            case "nothing": .nothing
            default: .accessToken(of: kinds)
            }
        }

        /// The value in the file.
        fileprivate var yaml: String {
            guard credential == "accessToken", kinds != [.user] else { return credential }
            let names = CallKind.allCases.filter(kinds.contains).map(\.rawValue)
            return "{accessToken: [\(names.joined(separator: ", "))]}"
        }
    }

    /// The name of the address of the resources, which stands among the origins.
    private static let base = "base"

    /// - Parameters:
    ///   - reader: of `resources`.
    ///   - isSigned: whether a trust file names the origins, so that only `base` may stand here.
    /// - Returns: the origins, and the address that paths are appended to.
    /// - Throws: `SettingsIssue`.
    static func resources(
        _ reader: SettingsReader<Void>?, bySignedFile isSigned: Bool
    ) throws -> (origins: [Resource], base: String?) {
        guard let reader else { return ([], nil) }
        if isSigned, let origin = reader.keys.first(where: { $0 != base }) {
            throw reader.issue(origin, "is what the trust file says: leave it out, or leave trust out")
        }
        let origins = try reader.keys.filter { $0 != base }.map { try resource($0, reader) }
        guard let address = reader.optionalString(base) else { return (origins, nil) }
        guard let origin = try? Origin(address), !address.contains(where: { "?#".contains($0) }) else {
            throw reader.issue(base, "is not a URL without a query, for example https://api.bank.example/v1")
        }
        guard isSigned || origins.contains(where: { (try? Origin($0.origin)) == origin }) else {
            throw reader.issue(base, "is at an origin that is not named here: add '\"\(origin)\": accessToken'")
        }
        return (origins, address)
    }

    private static func resource(_ origin: String, _ reader: SettingsReader<Void>) throws -> Resource {
        guard reader.json(origin)?.object != nil else {
            let credential = reader.string(origin)
            guard ["accessToken", "session", "both", "nothing"].contains(credential) else {
                throw reader.issue(
                    origin,
                    "must be accessToken, session, both, nothing or {accessToken: [user, implicit, device]}")
            }
            return Resource(origin: origin, credential: credential)
        }
        let access = reader.mapping(origin)
        let names = access.strings("accessToken")
        access.finish()
        let kinds = Set(
            names.compactMap { CallKind(rawValue: $0) }.filter { $0 != .nobody })
        guard !kinds.isEmpty, kinds.count == names.count else {
            throw reader.issue(
                origin, "names the kinds of call whose token it gets, each once: [user, implicit, device]")
        }
        return Resource(origin: origin, credential: "accessToken", kinds: kinds)
    }

    /// The lines of the file.
    var resourceLines: [String] {
        guard !resources.isEmpty || trust != nil && resourceBase != nil else { return [] }
        var lines = ["# Origins that get a credential; no other ever does.", "resources:"]
        if let resourceBase { lines.append("  \(Self.base): \(Self.quoted(resourceBase))") }
        return lines + resources.map { "  \(Self.quoted($0.origin)): \($0.yaml)" }
    }
}
