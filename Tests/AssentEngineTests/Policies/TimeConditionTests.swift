import AssentCore
import Foundation
import Testing

@testable import AssentEngine

@Suite("Conditions on time, age and scopes")
struct TimeConditionTests: ConditionSuite {
    private static func seconds(_ text: String) throws -> Int64 {
        let date = try #require(ISO8601DateFormatter().date(from: text))
        return Int64(date.timeIntervalSince1970)
    }

    private static let office = #""startTime":"08:00","endTime":"17:00""#
    private static let night = #""startTime":"22:30","endTime":"06:00""#

    @Test(
        "Times of day have both of their minutes, also over midnight; 24:00 is the day's end",
        arguments: [
            (office, "2026-03-04T07:59:59Z", false), (office, "2026-03-04T08:00:00Z", true),
            (office, "2026-03-04T17:00:59Z", true), (office, "2026-03-04T17:01:00Z", false),
            (night, "2026-03-04T22:29:59Z", false), (night, "2026-03-04T22:30:00Z", true),
            (night, "2026-03-04T23:59:59Z", true), (night, "2026-03-05T00:00:00Z", true),
            (night, "2026-03-05T06:00:59Z", true), (night, "2026-03-05T06:01:00Z", false),
            (#""startTime":"00:00","endTime":"24:00""#, "2026-03-04T23:59:59Z", true),
            (#""startTime":"23:59","endTime":"24:00""#, "2026-03-04T23:58:59Z", false),
            (#""startTime":"23:59","endTime":"24:00""#, "2026-03-04T23:59:00Z", true),
        ])
    func timesOfDay(range: String, moment: String, holds: Bool) throws {
        try expect(range, moment, holds)
    }

    @Test(
        "Days may go over the week's end, dates over the year's, and all that is given must hold",
        arguments: [
            (#""startDay":"mon","endDay":"FRI""#, "2026-03-06T23:59:59Z", true),
            (#""startDay":"mon","endDay":"fri""#, "2026-03-07T00:00:00Z", false),
            (#""startDay":"fri","endDay":"Mon""#, "2026-03-08T12:00:00Z", true),
            (#""startDay":"fri","endDay":"mon""#, "2026-03-10T00:00:00Z", false),
            (#""startDay":"sun","endDay":"sun""#, "2026-03-08T12:00:00Z", true),
            (#""startDay":"sun","endDay":"sun""#, "2026-03-09T12:00:00Z", false),
            (#""startDate":"2026:12:31","endDate":"2027:01:01""#, "2026-12-30T23:59:59Z", false),
            (#""startDate":"2026:12:31","endDate":"2027:01:01""#, "2026-12-31T00:00:00Z", true),
            (#""startDate":"2026:12:31","endDate":"2027:01:01""#, "2027-01-01T23:59:59Z", true),
            (#""startDate":"2026:12:31","endDate":"2027:01:01""#, "2027-01-02T00:00:00Z", false),
            (#""startDate":"2028:02:29","endDate":"2028:02:29""#, "2028-02-29T12:00:00Z", true),
            (#""startDay":"mon","endDay":"fri","startTime":"22:30","endTime":"06:00""#, "2026-03-07T01:00:00Z", false),
            (#""startDay":"mon","endDay":"fri","startTime":"22:30","endTime":"06:00""#, "2026-03-06T23:00:00Z", true),
        ])
    func daysAndDates(range: String, moment: String, holds: Bool) throws {
        try expect(range, moment, holds)
    }

    @Test(
        "The policy's zone decides, with its summer time; without one it is Greenwich",
        arguments: [
            ("Europe/Berlin", "2026-01-15T07:00:00Z", true), ("Europe/Berlin", "2026-01-15T06:59:59Z", false),
            ("Europe/Berlin", "2026-07-15T06:00:00Z", true), ("Europe/Berlin", "2026-07-15T15:01:00Z", false),
            ("GMT+2", "2026-01-15T06:00:00Z", true), ("GMT-03:30", "2026-01-15T11:29:59Z", false),
            ("GMT-03:30", "2026-01-15T11:30:00Z", true), ("GMT", "2026-01-15T08:00:00Z", true),
            ("UTC", "2026-01-15T07:59:59Z", false),
        ])
    func zones(zone: String, moment: String, holds: Bool) throws {
        try expect(#"\#(Self.office),"enforcementTimeZone":"\#(zone)""#, moment, holds)
    }

    private func expect(_ range: String, _ moment: String, _ holds: Bool) throws {
        let condition = try #require(try Self.read(#"{"type":"SimpleTime",\#(range)}"#))
        let facts = PolicyFacts(session: nil, now: try Self.seconds(moment))
        #expect(Self.verdict(condition, facts) == (holds ? "holds" : "fails"))
        #expect(Self.verdict(.not(condition), facts) == (holds ? "fails" : "holds"))
    }

    @Test("Without a clock no condition on time holds, nor its opposite")
    func noClock() throws {
        for condition in [#"{"type":"SimpleTime",\#(Self.office)}"#, #"{"type":"Session","maxSessionTime":5}"#] {
            let condition = try #require(try Self.read(condition))
            let facts = PolicyFacts(session: Self.session())
            #expect(Self.verdict(condition, facts) == "unknown" && Self.verdict(.not(condition), facts) == "unknown")
        }
    }

    @Test("Dates, times and days are written as they are read")
    func written() throws {
        for text in [
            #"{"type":"SimpleTime","startTime":"08:05","endTime":"24:00","enforcementTimeZone":"GMT"}"#,
            #"{"type":"SimpleTime","startDay":"sat","endDay":"sun","enforcementTimeZone":"Europe/Berlin"}"#,
            #"{"type":"SimpleTime","startDate":"1969:12:31","endDate":"2028:02:29","enforcementTimeZone":"GMT+2"}"#,
            #"{"type":"SimpleTime","startDate":"1583:01:01","endDate":"9999:12:31","enforcementTimeZone":"UTC"}"#,
        ] { #expect(try Self.read(text)?.json == JSONValue.parse(text)) }
    }

    @Test(
        "What is no range of time is refused, with its place",
        arguments: [
            (#"{"type":"SimpleTime"}"#, ""), (#"{"type":"SimpleTime","startTime":"08:00"}"#, ".endTime"),
            (#"{"type":"SimpleTime","endDay":"mon"}"#, ".startDay"),
            (#"{"type":"SimpleTime","startTime":"8:00","endTime":"17:00"}"#, ".startTime"),
            (#"{"type":"SimpleTime","startTime":"08:00","endTime":"24:01"}"#, ".endTime"),
            (#"{"type":"SimpleTime","startTime":"08:60","endTime":"17:00"}"#, ".startTime"),
            (#"{"type":"SimpleTime","startTime":"08:00","endTime":"08:00"}"#, ".endTime"),
            (#"{"type":"SimpleTime","startDay":"monday","endDay":"fri"}"#, ".startDay"),
            (#"{"type":"SimpleTime","startDate":"2027:02:29","endDate":"2027:03:01"}"#, ".startDate"),
            (#"{"type":"SimpleTime","startDate":"2027:13:01","endDate":"2028:01:01"}"#, ".startDate"),
            (#"{"type":"SimpleTime","startDate":"2027:01:00","endDate":"2028:01:01"}"#, ".startDate"),
            (#"{"type":"SimpleTime","startDate":"2027-01-01","endDate":"2028:01:01"}"#, ".startDate"),
            (#"{"type":"SimpleTime","startDate":"2027:01:02","endDate":"2027:01:01"}"#, ".endDate"),
            (#"{"type":"SimpleTime",\#(office),"enforcementTimeZone":"Europe/Nowhere"}"#, ".enforcementTimeZone"),
            (#"{"type":"SimpleTime",\#(office),"enforcementTimeZone":"GMT+15"}"#, ".enforcementTimeZone"),
            (#"{"type":"SimpleTime",\#(office),"enforcementTimeZone":"GMT+1:5"}"#, ".enforcementTimeZone"),
            (#"{"type":"SimpleTime",\#(office),"enforcementTimeZone":"../zone"}"#, ".enforcementTimeZone"),
            (#"{"type":"Session"}"#, ".maxSessionTime"), (#"{"type":"Session","maxSessionTime":0}"#, ".maxSessionTime"),
            (#"{"type":"Session","maxSessionTime":"5"}"#, ".maxSessionTime"),
            (#"{"type":"Session","maxSessionTime":99999999999999999999}"#, ".maxSessionTime"),
            (#"{"type":"Session","maxSessionTime":5,"terminateSession":true}"#, ".terminateSession"),
            (#"{"type":"OAuth2Scope"}"#, ".requiredScopes"),
            (#"{"type":"OAuth2Scope","requiredScopes":[]}"#, ".requiredScopes"),
        ])
    func refused(condition: String, place: String) throws {
        let error = #expect(throws: SettingsIssues.self) { try Self.read(condition) }
        #expect(
            error?.issues.contains { $0.path == "policies[0].condition\(place)" } == true,
            "\(condition): \(error?.description ?? "")")
    }

    @Test("A session is young enough up to its last second, and the answer says when that is over")
    func sessionAge() throws {
        let condition = try #require(try Self.read(#"{"type":"Session","maxSessionTime":5,"terminateSession":false}"#))
        for (now, verdict, change) in [(1_000, "holds", 1_300), (1_299, "holds", 1_300), (1_300, "fails", nil)]
            as [(Int64, String, Int64?)]
        {
            let facts = PolicyFacts(session: Self.session(begun: 1_000), now: now)
            #expect(Self.verdict(condition, facts) == verdict && condition.nextChange(facts) == change)
        }
        #expect(Self.verdict(condition, PolicyFacts(session: nil, now: 1_000)) == "unknown")
    }

    @Test("What depends on the time of day may change with each minute, and nothing else does")
    func nextChange() throws {
        let condition = try #require(
            try Self.read(#"{"type":"NOT","condition":{"type":"SimpleTime",\#(Self.office)}}"#))
        for (now, change) in [(0, 60), (59, 60), (60, 120), (-1, 0)] as [(Int64, Int64)] {
            #expect(condition.nextChange(PolicyFacts(session: nil, now: now)) == change)
        }
        #expect(PolicyCondition.authLevel(2).nextChange(PolicyFacts(session: Self.session(), now: 5)) == nil)
    }

    @Test("Scopes are those of the token that came with the request; without one nothing is said")
    func scopes() throws {
        let condition = try #require(try Self.read(#"{"type":"OAuth2Scope","requiredScopes":["pay","read"]}"#))
        for (scopes, verdict) in [
            (["pay", "read", "more"], "holds"), (["pay"], "fails"), ([], "fails"), (nil, "unknown"),
        ] as [(Set<String>?, String)] {
            let facts = PolicyFacts(user: nil, session: nil, scopes: scopes)
            #expect(Self.verdict(condition, facts) == verdict)
        }
        #expect(Self.verdict(.not(condition), PolicyFacts(session: Self.session())) == "unknown")
    }

    @Test("Over REST neither a caller's clock, zone nor scope is believed, and the decision ends with the minute")
    func caller() async throws {
        let fixture = try await TransactionFixture()
        let now = Int64(fixture.context.clock.now.timeIntervalSince1970)
        let minute = Int((now % 86_400 + 86_400) % 86_400 / 60)
        func text(_ minute: Int) -> String {
            "\(SimpleTime.twoDigits(minute % 1440 / 60)):\(SimpleTime.twoDigits(minute % 60))"
        }
        func decision(_ condition: String) async throws -> PolicyDecision? {
            let policy = try PolicyDecisionPointTests.policy("p", ["GET": true], try Self.read(condition))
            return try await PolicyDecisionPointTests.ask(
                fixture, [policy],
                ["requestTime": ["\((now + 43_200) * 1000)"], "requestTimeZone": ["GMT+12"], "scope": ["pay"]]
            ).first
        }
        let here = #"{"type":"SimpleTime","startTime":"\#(text(minute))","endTime":"\#(text(minute + 1))"}"#
        let inside = try await decision(here)
        #expect(inside?.actions == ["GET": true] && inside?.ttl == SimpleTime.nextChange(after: now) * 1000)
        let there = #"{"type":"SimpleTime","startTime":"\#(text(minute + 719))","endTime":"\#(text(minute + 721))"}"#
        let outside = try await decision(there)
        #expect(outside?.actions.isEmpty == true && outside?.ttl == SimpleTime.nextChange(after: now) * 1000)
        #expect(try await decision(#"{"type":"OAuth2Scope","requiredScopes":["pay"]}"#)?.actions.isEmpty == true)
    }
}
