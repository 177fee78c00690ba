import AssentCore
import AssentTokens
import HTTPTypes

/// The policies of a client, by origin.
struct PolicyTable: Sendable {
    private let policies: [Origin: [AuthorizationPolicy]]

    /// - Throws: ``AuthorizationError`` with code `invalidConfiguration` when a policy's origin is not a resource, two
    ///   are for one address, or one gives no time.
    init(
        _ policies: [AuthorizationPolicy], resources: [Origin: ResourceAccess]
    ) throws(AuthorizationError) {
        var table: [Origin: [AuthorizationPolicy]] = [:]
        for policy in policies {
            guard resources[policy.origin] != nil else {
                throw AuthorizationError(
                    .invalidConfiguration, "A policy is for \(policy.origin), which is not a configured resource.")
            }
            guard table[policy.origin]?.contains(where: { $0.path == policy.path }) != true else {
                throw AuthorizationError(
                    .invalidConfiguration, "Two policies are for \(policy.path) of \(policy.origin).")
            }
            guard policy.patience > .zero, policy.bufferLimit >= 0 else {
                throw AuthorizationError(
                    .invalidConfiguration, "The policy for \(policy.path) of \(policy.origin) has a limit below zero.")
            }
            table[policy.origin, default: []].append(policy)
        }
        self.policies = table.mapValues { list in list.sorted { $0.path.utf8.count > $1.path.utf8.count } }
    }

    /// The policy of a call: the one with the longest path.
    ///
    /// - Throws: ``AuthorizationError`` with code `invalidRequest` for a path that servers read differently, where the
    ///   origin has policies.
    func policy(of call: HTTPCall, at origin: Origin) throws(AuthorizationError) -> AuthorizationPolicy? {
        guard let candidates = policies[origin] else { return nil }
        guard let path = call.request.path.flatMap(ComparableURL.path(ofTarget:)), !ComparableURL.hasDotSegments(path)
        else {
            throw AuthorizationError(
                .invalidRequest, "The path of the request has steps upwards, or cannot be read, so it has no policy.",
                suggestion: "Write the path without . and .. segments.")
        }
        return candidates.first { $0.covers(path) }
    }
}

extension ComparableURL {
    /// Whether a segment of a path is `.` or `..`, with or without parameters, which some servers resolve.
    static func hasDotSegments(_ path: String) -> Bool {
        // Most paths have no dot.
        path.utf8.contains(UInt8(ascii: "."))
            && path.utf8.split(separator: UInt8(ascii: "/")).contains { segment in
                let name = segment.prefix { $0 != UInt8(ascii: ";") }
                return name.count < 3 && !name.isEmpty && name.allSatisfy { $0 == UInt8(ascii: ".") }
            }
    }
}
