import AssentCore
import Foundation

/// Times of day, days of the week and dates, in one time zone. Where several are given, all of them must hold. It goes
/// by the server's clock and the zone of the policy, whatever a caller says.
package struct SimpleTime: Sendable, Hashable {
    /// From one number to another, both included; over the end of the day or the week where the first is the larger.
    package struct Span: Sendable, Hashable {
        /// Where it begins.
        package let first: Int
        /// Where it ends.
        package let last: Int

        func contains(_ number: Int) -> Bool {
            first <= last ? first <= number && number <= last : number >= first || number <= last
        }
    }

    /// Minutes since midnight, 0 to 1440.
    package let minutes: Span?

    /// Days of the week, 0 for Sunday.
    package let days: Span?

    /// Days since 1970-01-01.
    package let dates: Span?

    /// The zone.
    package let zone: PolicyTimeZone

    /// Whether it is the time, at `now` seconds since 1970.
    package func contains(_ now: Int64) -> Bool {
        let local = now + zone.offset(at: now)
        let (day, seconds) = Self.divided(local, by: 86_400)
        let weekday = Int(Self.divided(day + 4, by: 7).rest)
        return minutes?.contains(Int(seconds / 60)) ?? true && days?.contains(weekday) ?? true
            && dates?.contains(Int(clamping: day)) ?? true
    }

    /// When the answer may be another one, in seconds since 1970: all of its times are whole minutes.
    package static func nextChange(after now: Int64) -> Int64 { (divided(now, by: 60).quotient + 1) * 60 }

    private static func divided(_ number: Int64, by divisor: Int64) -> (quotient: Int64, rest: Int64) {
        let rest = ((number % divisor) + divisor) % divisor
        return ((number - rest) / divisor, rest)
    }

    /// The condition as AM's JSON.
    var json: JSONValue {
        var object: JSONObject = ["type": "SimpleTime"]
        if let minutes {
            object["startTime"] = .string(Self.time(minutes.first))
            object["endTime"] = .string(Self.time(minutes.last))
        }
        if let days {
            object["startDay"] = .string(Self.weekdays[days.first])
            object["endDay"] = .string(Self.weekdays[days.last])
        }
        if let dates {
            object["startDate"] = .string(CivilDate(days: dates.first).description)
            object["endDate"] = .string(CivilDate(days: dates.last).description)
        }
        object["enforcementTimeZone"] = .string(zone.name)
        return .object(object)
    }

    private static let weekdays = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]

    private static func time(_ minutes: Int) -> String { "\(twoDigits(minutes / 60)):\(twoDigits(minutes % 60))" }

    /// A number with two digits at least.
    static func twoDigits(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }

    /// The minutes of `HH:mm`, up to `24:00`; `nil` for anything else.
    static func minutes(of text: String) -> Int? {
        guard let parts = numbers(text, digits: [2, 2]), parts[1] < 60 else { return nil }
        let minutes = parts[0] * 60 + parts[1]
        return minutes <= 24 * 60 ? minutes : nil
    }

    /// The number of a day of the week, in upper or lower case; `nil` for anything else.
    static func weekday(of text: String) -> Int? { weekdays.firstIndex(of: text.lowercased()) }

    /// Numbers with as many digits as are asked for, and colons between; `nil` for anything else.
    static func numbers(_ text: String, digits: [Int]) -> [Int]? {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == digits.count else { return nil }
        for (part, count) in zip(parts, digits) {
            guard part.utf8.count == count, part.utf8.allSatisfy(\.isASCIIDigit) else { return nil }
        }
        return parts.compactMap { Int($0) }
    }
}

/// A time zone of the file: one of the time zone database, or a fixed distance to Greenwich.
package struct PolicyTimeZone: Sendable, Hashable {
    /// As it is written in the file.
    package let name: String
    private let zone: TimeZone

    /// Greenwich.
    package static let greenwich = PolicyTimeZone(name: "GMT", zone: .gmt)

    private init(name: String, zone: TimeZone) {
        self.name = name
        self.zone = zone
    }

    /// Reads `Europe/Berlin`, `GMT`, `GMT+2` or `GMT-03:30`; `nil` for a zone that is not known.
    package init?(_ name: String) {
        if name == "GMT" || name == "UTC" {
            self.init(name: name, zone: .gmt)
        } else if name.hasPrefix("GMT") {
            guard let seconds = Self.distance(name.dropFirst(3)), let zone = TimeZone(secondsFromGMT: seconds) else {
                return nil
            }
            self.init(name: name, zone: zone)
        } else {
            guard name.contains("/"), name.utf8.count <= 64, let zone = TimeZone(identifier: name) else { return nil }
            self.init(name: name, zone: zone)
        }
    }

    /// Seconds that its clocks are ahead of Greenwich.
    func offset(at now: Int64) -> Int64 {
        Int64(zone.secondsFromGMT(for: Date(timeIntervalSince1970: TimeInterval(now))))
    }

    private static func distance(_ text: Substring) -> Int? {
        guard let sign = text.first, sign == "+" || sign == "-" else { return nil }
        let parts = text.dropFirst().split(separator: ":", omittingEmptySubsequences: false)
        guard (1...2).contains(parts.count), (1...2).contains(parts[0].utf8.count),
            parts.allSatisfy({ $0.utf8.allSatisfy(\.isASCIIDigit) }), let hours = Int(parts[0]), hours <= 14
        else { return nil }
        var minutes = 0
        if parts.count == 2 {
            guard parts[1].utf8.count == 2, let number = Int(parts[1]), number < 60 else { return nil }
            minutes = number
        }
        return (hours * 60 + minutes) * (sign == "+" ? 60 : -60)
    }
}

/// A date of the Gregorian calendar, as AM's conditions write it.
struct CivilDate: Hashable, CustomStringConvertible {
    /// Days since 1970-01-01.
    let days: Int

    init(days: Int) {
        self.days = days
    }

    /// Reads `yyyy:MM:dd`; `nil` for what is not a date.
    init?(_ text: String) {
        guard let parts = SimpleTime.numbers(text, digits: [4, 2, 2]), (1...12).contains(parts[1]) else { return nil }
        let days = Self.days(before: parts[0], month: parts[1]) + parts[2] - 1
        let (year, month) = parts[1] == 12 ? (parts[0] + 1, 1) : (parts[0], parts[1] + 1)
        let next = Self.days(before: year, month: month)
        guard parts[2] >= 1, days < next else { return nil }
        self.days = days
    }

    /// `yyyy:MM:dd`.
    var description: String {
        var year = days < 0 ? 1970 + days / 365 - 1 : 1970 + days / 366
        while Self.days(before: year + 1, month: 1) <= days { year += 1 }
        let month = (2...12).last { Self.days(before: year, month: $0) <= days } ?? 1
        let day = days - Self.days(before: year, month: month) + 1
        let digits = "\(year)"
        let padded = String(repeating: "0", count: max(0, 4 - digits.count)) + digits
        return "\(padded):\(SimpleTime.twoDigits(month)):\(SimpleTime.twoDigits(day))"
    }

    /// Days from 1970-01-01 to the first of a month.
    private static func days(before year: Int, month: Int) -> Int {
        let past = year - 1
        let leapDays = past / 4 - past / 100 + past / 400
        let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        let before = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334][month - 1]
        return past * 365 + leapDays + before + (isLeap && month > 2 ? 1 : 0) - 719_162
    }
}
