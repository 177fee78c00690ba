import AssentCore

/// A realm of AM, for example `alpha` or `/alpha/customers`.
public struct JourneyRealm: Hashable, Sendable, CustomStringConvertible {
    /// The names from the top, without the root realm.
    public let names: [String]

    /// Reads a realm: empty, `/` and `root` are the root realm; `alpha`, `/alpha` and `root/realms/alpha` are the same,
    /// and so are `/a/b` and `a/realms/b`, as AM's mobile SDKs want it.
    ///
    /// - Throws: ``JourneyFailure`` with code `invalidConfiguration` for a name that is empty, `.` or `..`, or has
    ///   control characters.
    public init(_ text: String) throws {
        var names = text.split(separator: "/").map { part in
            String(part.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
        }
        names.removeAll { $0.isEmpty }
        if names.first == "realms" { names.removeFirst() }
        if names.first == "root" { names.removeFirst() }
        let rest = names.first == "realms" ? Array(names.dropFirst()) : names
        if rest.count % 2 == 1, rest.enumerated().allSatisfy({ $0 % 2 == 0 || $1 == "realms" }) {
            names = rest.enumerated().filter { $0.offset % 2 == 0 }.map(\.element)
        }
        for name in names {
            guard name != ".", name != "..", name.unicodeScalars.allSatisfy({ $0.value > 0x1F && $0.value != 0x7F })
            else { throw JourneyFailure(.invalidConfiguration, "The realm has a name that no realm can have.") }
        }
        self.names = names
    }

    /// How it stands in AM's paths: `realms/root` and `/realms/<name>` for each name.
    public var path: String {
        names.reduce("realms/root") { $0 + "/realms/" + PercentEncoding.encode($1) }
    }

    /// `/` and the names.
    public var description: String { "/" + names.joined(separator: "/") }
}
