package import AssentCore

/// Which action policies decide on when a request of some method comes to some path: an entry of a route's `actions`.
///
/// Policies may speak of other actions than HTTP's methods, as AM's do. What a transaction binds is not affected: that
/// is the method of the request.
package struct RouteAction: Sendable, Hashable {
    /// The HTTP methods.
    package let methods: Set<String>

    /// The paths: a pattern as a policy has it in its resources, from the first slash on.
    package let path: String

    /// The action.
    package let name: String

    private let pattern: WildcardPattern

    /// An entry.
    ///
    /// - Throws: ``PatternError`` when `path` is not a pattern that some path matches.
    package init(methods: Set<String>, path: String, name: String) throws(PatternError) {
        self.methods = methods
        self.path = path
        self.name = name
        guard path.utf8.first == UInt8(ascii: "/"), !path.utf8.contains(UInt8(ascii: "?")) else {
            throw PatternError("must be a path without a query, for example /transfers/*")
        }
        let whole = try ResourcePattern("https://gateway.example" + path)
        guard whole.matchesSomeURL, let pattern = WildcardPattern(path.utf8) else {
            throw PatternError(
                "matches no path in its canonical form: no dot segments, no semicolons, escapes only where needed")
        }
        self.pattern = pattern
    }

    /// Whether it is about a request. The query does not matter.
    package func covers(_ method: String, _ resource: CanonicalResource) -> Bool {
        var steps = 0
        return methods.contains(method) && pattern.matches(resource.comparedPath.utf8, steps: &steps)
    }

    /// Whether some path at or below `path` matches.
    package func reaches(below path: String) -> Bool {
        let beginnings = path == "/" ? ["/*"] : [path, path + "/*"]
        return beginnings.contains { text in WildcardPattern(text.utf8)?.overlaps(pattern) ?? false }
    }

    /// Whether `other` would never be looked at behind this entry.
    package func hides(_ other: RouteAction) -> Bool {
        pattern == other.pattern && other.methods.isSubset(of: methods)
    }
}
