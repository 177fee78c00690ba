import Foundation

/// The dates of cookies (RFC 6265 §5.1.1), which cover the three formats of RFC 9110 §5.6.7 and their usual variants.
enum CookieDate {
    private static let months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]

    static func parse(_ text: String) -> Date? {
        var time: (hour: Int, minute: Int, second: Int)?
        var day: Int?
        var month: Int?
        var year: Int?
        for token in text.utf8.split(whereSeparator: isDelimiter) {
            if time == nil, let found = self.time(token) {
                time = found
            } else if day == nil, let found = number(token, digits: 1...2) {
                day = found
            } else if month == nil, let found = self.month(token) {
                month = found
            } else if year == nil, let found = number(token, digits: 2...4) {
                year = found
            }
        }
        guard let time, let day, let month, var year else { return nil }
        if (70...99).contains(year) { year += 1900 } else if (0...69).contains(year) { year += 2000 }
        guard (1601...9999).contains(year), (1...length(of: month, in: year)).contains(day), time.hour <= 23,
            time.minute <= 59, time.second <= 59
        else { return nil }
        let seconds = ((days(year, month, day) * 24 + time.hour) * 60 + time.minute) * 60 + time.second
        return Date(timeIntervalSince1970: Double(seconds))
    }

    private static func isDelimiter(_ byte: UInt8) -> Bool {
        byte == 0x09 || (0x20...0x2F).contains(byte) || (0x3B...0x40).contains(byte) || (0x5B...0x60).contains(byte)
            || (0x7B...0x7E).contains(byte)
    }

    /// A number of so many digits, with anything but a digit behind it.
    private static func number(_ token: some Collection<UInt8>, digits: ClosedRange<Int>) -> Int? {
        let leading = token.prefix(while: \.isASCIIDigit)
        guard digits.contains(leading.count) else { return nil }
        return Int(String(decoding: leading, as: UTF8.self))
    }

    private static func time(_ token: Substring.UTF8View.SubSequence) -> (hour: Int, minute: Int, second: Int)? {
        let parts = token.split(separator: UInt8(ascii: ":"), maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0].allSatisfy(\.isASCIIDigit), parts[1].allSatisfy(\.isASCIIDigit),
            let hour = number(parts[0], digits: 1...2), let minute = number(parts[1], digits: 1...2),
            let second = number(parts[2], digits: 1...2)
        else { return nil }
        return (hour, minute, second)
    }

    private static func month(_ token: Substring.UTF8View.SubSequence) -> Int? {
        let name = String(decoding: token.prefix(3).map(\.asciiLowercased), as: UTF8.self)
        return months.firstIndex(of: name).map { $0 + 1 }
    }

    private static func isLeap(_ year: Int) -> Bool {
        year.isMultiple(of: 4) && (!year.isMultiple(of: 100) || year.isMultiple(of: 400))
    }

    private static func length(of month: Int, in year: Int) -> Int {
        switch month {
        case 2: isLeap(year) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    /// Days since 1970-01-01 in the Gregorian calendar.
    private static func days(_ year: Int, _ month: Int, _ day: Int) -> Int {
        let before = year - 1
        let years = before * 365 + before / 4 - before / 100 + before / 400
        let thisYear = (1..<month).reduce(0) { $0 + length(of: $1, in: year) } + day - 1
        return years + thisYear - 719_162
    }
}
