import AssentConfiguration
import AssentCore
import AssentEngine

/// The keys `accepts` and `public` of a gateway route.
enum RouteKinds {
    /// The name of everybody, known or not, who is not asked who they are.
    private static let anyone = "anyone"

    /// For whom the callers of a route may call; `nil` where nobody is asked.
    ///
    /// - Throws: what is wrong, with the route's name.
    static func read(_ route: SettingsReader<Void>, name: String) throws -> Set<CallerKind>? {
        let isPublic = route.bool("public", default: false)
        guard route.has("accepts") else { return isPublic ? nil : [.user] }
        let names = route.strings("accepts")
        if names == [anyone] { return nil }
        guard !isPublic else {
            throw route.issue("accepts", "the route \(name) is public, so accepts can only be [\(anyone)]")
        }
        guard !names.isEmpty else { throw route.issue("accepts", "the route \(name) must accept somebody") }
        guard !names.contains(anyone) else {
            throw route.issue("accepts", "the route \(name) accepts \(anyone), which stands alone")
        }
        return Set(
            try names.map { text in
                guard let kind = CallerKind(rawValue: text) else {
                    let known = (CallerKind.allCases.map(\.rawValue) + [anyone]).joined(separator: ", ")
                    throw route.issue("accepts", "the route \(name) cannot accept \(text); known: \(known)")
                }
                return kind
            })
    }
}
