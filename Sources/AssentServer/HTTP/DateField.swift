import Foundation

/// The time as a field `Date` says it (RFC 9110 §5.6.7): `Sun, 06 Nov 1994 08:49:37 GMT`.
enum DateField {
    private static let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    static func text(of time: Date) -> String {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = .gmt
        let parts = calendar.dateComponents([.weekday, .day, .month, .year, .hour, .minute, .second], from: time)
        let (day, month) = (days[((parts.weekday ?? 1) - 1) % 7], months[((parts.month ?? 1) - 1) % 12])
        let clock = [parts.hour, parts.minute, parts.second].map { digits($0, 2) }.joined(separator: ":")
        return "\(day), \(digits(parts.day, 2)) \(month) \(digits(parts.year, 4)) \(clock) GMT"
    }

    private static func digits(_ number: Int?, _ count: Int) -> String {
        let text = String(number ?? 0)
        return String(repeating: "0", count: max(0, count - text.utf8.count)) + text
    }
}
