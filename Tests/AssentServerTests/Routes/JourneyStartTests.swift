import AssentCore
import AssentTesting
import NIOCore
import Testing

@testable import AssentServer

@Suite("How many journeys may be begun")
struct JourneyStartTests {
    private static let refusal =
        #"{"code":429,"reason":"Too Many Requests","message":"Too many journeys were begun from this address. Try again in a minute."}"#

    private func start(_ fixture: ServerFixture) async throws -> Answer {
        try await fixture.send(
            "POST", fixture.json("authenticate?authIndexType=service&authIndexValue=Quick"))
    }

    @Test("Beyond the limit a start is refused and leaves no row; what was begun goes on; the next minute is another")
    func limit() async throws {
        try await ServerFixture.run(configuring: { $0.journeyStartsPerMinute = 3 }) { fixture in
            let seconds = fixture.clock.epochSeconds
            if seconds % 60 > 50 { fixture.clock.advance(by: Double(60 - seconds % 60)) }
            let begun = try await start(fixture)
            for _ in 0..<2 { #expect(try await start(fixture).status == 200) }
            let rows = try await fixture.count("journey_steps")
            for _ in 0..<4 {
                let refused = try await start(fixture)
                #expect(refused.status == 429 && refused.text == Self.refusal)
                #expect(refused["Retry-After"] == "60")
            }
            let named = try await fixture.send(
                "POST", fixture.json("authenticate"),
                [("X-Forwarded-For", "203.0.113.9"), ("Forwarded", "for=203.0.113.9")])
            #expect(named.status == 429)
            let page = try await fixture.send("GET", fixture.server("/UI/Login?realm=/alpha&service=Quick"))
            #expect(page.status == 429)
            #expect(try await fixture.count("journey_steps") == rows)
            let account = try fixture.account("ben")
            let filled = ServerFixture.filled(begun.json) { type in
                type == "NameCallback" ? "ben" : type == "PasswordCallback" ? .string(account.password.reveal()) : nil
            }
            let ended = try await fixture.send(
                "POST", fixture.json("authenticate"), [("Content-Type", "application/json")],
                text: filled.serialized())
            #expect(ended.json["tokenId"]?.string != nil)
            fixture.clock.advance(by: 60)
            #expect(try await start(fixture).status == 200)
        }
    }

    @Test("Fifty at the same time begin no more than the limit")
    func parallel() async throws {
        try await ServerFixture.run(configuring: { $0.journeyStartsPerMinute = 7 }) { fixture in
            let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<50 { group.addTask { try await start(fixture).status } }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(statuses.count { $0 == 200 } == 7 && statuses.count { $0 == 429 } == 43)
            #expect(try await fixture.count("journey_steps") == 7)
        }
    }

    @Test("All addresses of an IPv6 network count as one, and a mapped IPv4 address as itself")
    func addresses() throws {
        func key(_ text: String) throws -> String? {
            ClientAddress(try SocketAddress(ipAddress: text, port: 4000)).limitKey
        }
        #expect(try key("203.0.113.9") == "203.0.113.9")
        #expect(try key("203.0.113.9") != key("203.0.113.8"))
        #expect(try key("::ffff:203.0.113.9") == "203.0.113.9")
        #expect(try key("2001:db8:1:2::1") == key("2001:db8:1:2:ffff:ffff:ffff:ffff"))
        #expect(try key("2001:db8:1:2::1") != key("2001:db8:1:3::1"))
        #expect(ClientAddress(nil).limitKey == nil)
        #expect(ClientAddress(try SocketAddress(unixDomainSocketPath: "/tmp/s")).limitKey == nil)
    }
}
