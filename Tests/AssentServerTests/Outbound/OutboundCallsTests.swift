import AssentCore
import AssentTesting
import HTTPTypes
import Logging
import Testing

@testable import AssentServer

@Suite("What the server fetches of itself")
struct OutboundCallsTests {
    private static let url = "https://app.example/jwks?v=1"

    private static func failure(
        _ url: String = url, _ answer: @escaping @Sendable (InMemoryTransport.Exchange) async throws -> HTTPReply
    ) async -> OutboundCalls.Failure? {
        do {
            _ = try await OutboundCalls(InMemoryTransport(answer)).fetch(url, accepting: "application/json")
            return nil
        } catch {
            return error
        }
    }

    private static func reply(_ status: Int, _ body: HTTPBody = .empty, location: String? = nil) -> HTTPReply {
        var response = HTTPResponse(status: .init(code: status))
        response.headerFields[.location] = location
        return HTTPReply(response, body: body)
    }

    @Test("One GET of the very URL, without a credential")
    func request() async throws {
        let transport = InMemoryTransport { _ in Self.reply(200, HTTPBody(Array("{}".utf8))) }
        let bytes = try await OutboundCalls(transport).fetch(Self.url, accepting: "application/json")
        #expect(bytes == Array("{}".utf8))
        let request = try #require(transport.exchanges.first?.request)
        #expect(transport.exchanges.count == 1)
        #expect(request.method == .get && request.scheme == "https" && request.authority == "app.example")
        #expect(request.path == "/jwks?v=1")
        #expect(request.headerFields.map(\.name) == [.accept])
    }

    @Test("One POST of what is handed over, and any status of 2xx is well")
    func handOver() async throws {
        let transport = InMemoryTransport { _ in Self.reply(202) }
        try await OutboundCalls(transport).post(
            Array("{}".utf8), to: Self.url, fields: [.contentType: "application/json"])
        let exchange = try #require(transport.exchanges.first)
        #expect(transport.exchanges.count == 1)
        #expect(exchange.request.method == .post && exchange.request.path == "/jwks?v=1" && exchange.text == "{}")
        #expect(exchange.request.headerFields.map(\.name) == [.contentType])
        for status in [302, 307, 404, 500] {
            let refusing = InMemoryTransport { _ in Self.reply(status, location: "https://app.example/other") }
            await #expect(throws: OutboundCalls.Failure.status(status)) {
                try await OutboundCalls(refusing).post([], to: Self.url, fields: [:])
            }
            #expect(refusing.exchanges.count == 1)
        }
        await #expect(throws: OutboundCalls.Failure.refusedURL) {
            try await OutboundCalls(transport).post([], to: "http://app.example/", fields: [:])
        }
    }

    @Test("Without TLS only this machine is called, and only by a server under development")
    func plain() async throws {
        let service = try await TestUpstream.start()
        let url = "http://localhost:\(service.port)/"
        var settings = OutboundSettings()
        settings.timeout = .seconds(600)
        settings.privateHosts = [try NormalizedHost("localhost")]
        func post() async throws {
            try await OutboundCalls(
                to: [url], settings: settings, clock: ManualClock(),
                logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
            ).post([], to: url, fields: [:])
        }
        await #expect(throws: OutboundCalls.Failure.failed(.invalidRequest)) { try await post() }
        settings.allowsPlainLoopback = true
        await #expect(throws: Never.self) { try await post() }
        #expect(service.requests.count == 1)
        await service.stop()
    }

    @Test(
        "A redirect is not followed, and no other status than 200 has content",
        arguments: [301, 302, 303, 307, 308, 204, 404, 500])
    func statuses(status: Int) async {
        let transport = InMemoryTransport { _ in Self.reply(status, location: "https://app.example/other") }
        await #expect(throws: OutboundCalls.Failure.status(status)) {
            try await OutboundCalls(transport).fetch(Self.url, accepting: "application/json")
        }
        #expect(transport.exchanges.count == 1)
    }

    @Test("More than 64 KiB are not read")
    func size() async throws {
        let limit = OutboundCalls.replyBytes
        let exact = InMemoryTransport { _ in Self.reply(200, HTTPBody([UInt8](repeating: 0x20, count: limit))) }
        #expect(try await OutboundCalls(exact).fetch(Self.url, accepting: "application/json").count == limit)
        let more = await Self.failure { _ in Self.reply(200, HTTPBody([UInt8](repeating: 0x20, count: limit + 1))) }
        #expect(more == .failed(.bodyTooLarge))
    }

    @Test(
        "What cannot be reached in time is a failure", arguments: [HTTPTransportError.Code.timedOut, .connectFailed])
    func unreachable(code: HTTPTransportError.Code) async {
        #expect(await Self.failure { _ in throw HTTPTransportError(code, "") } == .failed(code))
    }

    @Test(
        "Other URLs are refused, and nothing is sent",
        arguments: [
            "", "http://app.example/jwks", "HTTP://app.example/jwks", "file:///etc/passwd", "ftp://app.example/x",
            "https://", "https://user@app.example/jwks", "https://user:pass@app.example/", "https://app.example/#x",
            "https://app.example:0/", "https://app.example:65536/", "https://app\\.example/", "https://app.example/ä",
            "https://127.1/", "https://0x7f000001/", "https://2130706433/", "https://[::1%25eth0]/",
            "https://app.example/" + String(repeating: "a", count: 2048),
        ])
    func urls(url: String) async {
        #expect(OutboundCalls.fault(in: url) != nil)
        #expect(await Self.failure(url) { _ in Self.reply(200) } == .refusedURL)
    }

    @Test("A name that leads to this machine is refused, unless the file names the host")
    func addresses() async throws {
        try await ServerFixture.run { fixture in
            let url = fixture.oauth("connect/jwk_uri")
            var settings = OutboundSettings()
            settings.timeout = .seconds(600)
            settings.authorities = .pemFile(try #require(fixture.endpoints.authorityFile))
            func calls() throws -> OutboundCalls {
                try OutboundCalls(
                    to: [url], settings: settings, clock: fixture.clock, logger: fixture.server.context.logger)
            }
            await #expect(throws: OutboundCalls.Failure.failed(HTTPTransportError.Code(rawValue: "addressRefused"))) {
                try await calls().fetch(url, accepting: "application/json")
            }
            settings.privateHosts = [try NormalizedHost("localhost")]
            #expect(try await JSONValue.parse(calls().fetch(url, accepting: "application/json"))["keys"] != nil)
            // A URL that the file does not have.
            await #expect(throws: OutboundCalls.Failure.failed(.notPinned)) {
                try await calls().fetch("https://other.example/", accepting: "application/json")
            }
            // The system's authorities have not made the fixture's certificate.
            settings.authorities = .system
            await #expect(throws: OutboundCalls.Failure.failed(.untrustedServer)) {
                try await calls().fetch(url, accepting: "application/json")
            }
        }
    }
}
