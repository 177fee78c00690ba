import AssentCore

/// Where a link that signs a browser in may lead: a page that the operator's file lists, as a whole.
enum WebLinkTarget {
    /// The most targets of an app.
    static let limit = 32

    /// The most bytes of a target.
    private static let longest = 2048

    /// What is wrong with an app's list, one sentence each; empty when nothing is.
    static func faults(_ targets: [String]) -> [String] {
        var faults = targets.compactMap { target in fault(target).map { "webLinks: \(target.prefix(200)) \($0)" } }
        if targets.count > limit { faults.append("webLinks has more than \(limit) URLs") }
        if Set(targets).count != targets.count { faults.append("webLinks has a URL twice") }
        return faults
    }

    private static func fault(_ target: String) -> String? {
        guard target.utf8.count <= longest else { return "is longer than \(longest) bytes" }
        let isPlain = target.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !odd.contains($0) }
        guard isPlain, let origin = try? Origin(target) else { return "is not an https URL in plain characters" }
        guard origin.isSecure || origin.host.isLoopback else { return "is neither https nor on this machine" }
        // No policy of a page can name one, and browsers would not follow the form there.
        guard origin.host.kind != .ipv6 else { return "names an IPv6 address" }
        guard !target.contains("#") else { return "has a fragment" }
        return nil
    }

    /// What readers of a URL, or of the page that has it, could understand differently.
    private static let odd = Set("\\\"'<>`;,".utf8)

    /// Whether an app lists a target, byte for byte.
    static func isListed(_ target: String, by app: OAuthApp) -> Bool {
        app.webLinks.contains { $0.utf8.elementsEqual(target.utf8) }
    }
}
