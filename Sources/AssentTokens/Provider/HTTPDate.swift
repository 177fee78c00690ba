/// The time in a field `Date` (RFC 9110 §5.6.7), in the one form that a server may write: `Sun, 06 Nov 1994 08:49:37
/// GMT`.
struct HTTPDate: Equatable {
    /// Seconds since 1970-01-01T00:00:00Z.
    let seconds: Int64

    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    /// Reads a field; `nil` when it is none.
    init?(_ text: String) {
        let parts = text.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 6, parts[0].utf8.count == 4, parts[0].hasSuffix(","), parts[5] == "GMT",
            let day = Self.number(parts[1], digits: 2), let month = Self.months.firstIndex(of: parts[2]),
            let year = Self.number(parts[3], digits: 4)
        else { return nil }
        let time = parts[4].split(separator: ":", omittingEmptySubsequences: false).compactMap {
            Self.number(String($0), digits: 2)
        }
        guard time.count == 3, time[0] < 24, time[1] < 60, time[2] <= 60, (1970...9999).contains(year),
            (1...31).contains(day)
        else { return nil }
        // Days since 1970-03-01, by years that begin in March, so that the leap day is the last.
        let (shifted, fromMarch) = month < 2 ? (year - 1, month + 10) : (year, month - 2)
        let days = shifted * 365 + shifted / 4 - shifted / 100 + shifted / 400 + (153 * fromMarch + 2) / 5 + day - 1
        seconds = Int64((days - 719_468) * 86400 + time[0] * 3600 + time[1] * 60 + time[2])
    }

    private static func number(_ text: String, digits: Int) -> Int? {
        guard text.utf8.count == digits, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return Int(text)
    }
}
