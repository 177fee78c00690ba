import AssentConfiguration
import AssentCore
import Foundation
import Testing

@testable import AssentServer

@Suite("What the file says of the services behind a route")
struct UpstreamLoaderTests {
    private static let pin = "sha256/" + Data([UInt8](repeating: 7, count: 32)).base64EncodedString()

    /// The first route of a good file with these lines in the place of its upstream.
    private static func route(_ lines: String) throws -> GatewayRoute? {
        let good = FixtureConfiguration.yaml(upstream: 9080, refusing: 9081)
        let indented = lines.split(separator: "\n").joined(separator: "\n      ")
        let name = "- name: bank\n      "
        let text = good.replacing(name + "upstream: http://127.0.0.1:9080", with: name + indented, maxReplacements: 1)
        return try ServerConfiguration.parse(text, file: "/etc/assent/assent.yaml").gateway?.routes.first
    }

    @Test("One service has the usual bounds")
    func single() throws {
        let read = try #require(try Self.route("upstream: http://127.0.0.1:9080"))
        #expect(read.upstream == UpstreamSettings(["http://127.0.0.1:9080"]) && read.rewrite == nil)
        let timeouts = read.upstream.timeouts
        #expect(timeouts.connect == 5 && timeouts.head == 30 && timeouts.silence == 30 && timeouts.total == nil)
    }

    @Test("All that can be said of several is read")
    func several() throws {
        let read = try #require(
            try Self.route(
                """
                upstreams: ["https://a.example", "https://b.example:9443"]
                healthCheck: {path: "/healthz?x=1", everySeconds: 5}
                timeouts: {connectSeconds: 2, headSeconds: 3, silenceSeconds: 4, totalSeconds: 50}
                rewrite: /api/v2
                upstreamTLS:
                  authorities: services.pem
                  pins: ["\(Self.pin)"]
                  certificate: gateway.pem
                  privateKey: /keys/gateway.key
                """))
        var expected = UpstreamSettings(["https://a.example", "https://b.example:9443"])
        expected.check = .init(path: "/healthz?x=1", everySeconds: 5)
        expected.timeouts = .init(connect: 2, head: 3, silence: 4, total: 50)
        expected.tls.authorities = .pemFile("/etc/assent/services.pem")
        expected.tls.pins = [try Pin(Self.pin)]
        expected.tls.certificate = .init(chain: "/etc/assent/gateway.pem", privateKey: "/keys/gateway.key")
        #expect(read.upstream == expected && read.rewrite == "/api/v2")
    }

    @Test(
        "A mistake is named",
        arguments: [
            ("policyset: x", "upstream: is missing"),
            ("upstream: http://a.example\nupstreams: [\"http://b.example\"]", "upstream or upstreams"),
            ("upstreams: []", "1 to 8"),
            ("upstreams: [\(Array(repeating: "\"http://a.example\"", count: 9).joined(separator: ", "))]", "1 to 8"),
            ("upstreams: [\"http://a.example\", \"http://A.example:80\"]", "twice"),
            ("upstreams: [\"http://a.example\", \"ftp://b.example\"]", "scheme, host and port"),
            ("upstreams: [\"http://a.example/path\"]", "scheme, host and port"),
            ("upstreams: http://a.example", "must be a list of texts"),
            ("upstream: http://a.example\nhealthCheck: {path: /x}", "several upstreams"),
            ("upstreams: [\"http://a.example\", \"http://b.example\"]\nhealthCheck: {path: x}", "/healthz"),
            ("upstreams: [\"http://a.example\", \"http://b.example\"]\nhealthCheck: {path: /a/../b}", "/healthz"),
            ("upstreams: [\"http://a.example\", \"http://b.example\"]\nhealthCheck: {}", "path: is missing"),
            (
                "upstreams: [\"http://a.example\", \"http://b.example\"]\nhealthCheck: {path: /, everySeconds: 0}",
                "from 1 to 3600"
            ),
            ("upstream: http://a.example\ntimeouts: {connectSeconds: 0}", "from 1 to 60"),
            ("upstream: http://a.example\ntimeouts: {bodySeconds: 3}", "unknown key"),
            ("upstream: http://a.example\nrewrite: api", "must be a path as it is sent"),
            ("upstream: http://a.example\nrewrite: /api/", "must be a path as it is sent"),
            ("upstream: http://a.example\nrewrite: /api/../x", "must be a path as it is sent"),
            ("upstream: http://a.example\nupstreamTLS: {authorities: a.pem}", "begin with https"),
            (
                "upstreams: [\"https://a.example\", \"http://b.example\"]\nupstreamTLS: {authorities: a.pem}",
                "begin with https"
            ),
            ("upstream: https://a.example\nupstreamTLS: {pins: [abc]}", "pins"),
            (
                "upstream: https://a.example\nupstreamTLS: {pins: [\"\(UpstreamLoaderTests.pin)\", \"\(UpstreamLoaderTests.pin)\"]}",
                "twice"
            ),
            ("upstream: https://a.example\nupstreamTLS: {certificate: a.pem}", "privateKey: is missing"),
            ("upstream: https://a.example\nupstreamTLS: {privateKey: a.key}", "certificate: is missing"),
            ("upstream: https://a.example\nupstreamTLS: {verify: false}", "unknown key"),
        ])
    func mistakes(lines: String, message: String) {
        let error = #expect(throws: ConfigurationError.self) { try Self.route(lines) }
        #expect(error?.message.contains(message) == true, "\(error as Any)")
        #expect(error?.line != nil)
    }
}
