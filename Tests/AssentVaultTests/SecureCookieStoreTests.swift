import AssentCore
import AssentPeers
import AssentTesting
import Foundation
import Testing

@testable import AssentVault

/// A store in which something happens once, before or after an update.
private struct InterruptedStore: SecretStore {
    let store: any SecretStore
    let isAfter: Bool
    let interruption = Locked<(@Sendable () async throws -> Void)?>(nil)

    func value(_ name: String) async throws -> StoredSecret? { try await store.value(name) }
    func update(_ name: String, to value: Secret?, expected: ExpectedVersion) async throws -> UInt64 {
        let interruption = interruption.withLock { $0.take() }
        if !isAfter { try await interruption?() }
        let version = try await store.update(name, to: value, expected: expected)
        if isAfter { try await interruption?() }
        return version
    }
    func names() async throws -> [String] { try await store.names() }
    func removeAll() async throws { try await store.removeAll() }
    func lease(_ name: String, deadline: Date) async throws -> any SecretLease {
        try await store.lease(name, deadline: deadline)
    }
}

@Suite("Cookies in a vault")
struct SecureCookieStoreTests {
    private let clock = ManualClock()
    private let secrets = MemorySecretStore()

    private func store(_ secrets: (any SecretStore)? = nil) -> SecureCookieStore {
        SecureCookieStore(in: secrets ?? self.secrets, clock: clock)
    }

    private func sent(_ store: SecureCookieStore, _ url: String, path: String = "/") async throws -> [String] {
        await store.cookies(for: try Origin(url), path: path).map { "\($0.name)=\($0.value.reveal())" }
    }

    /// A cookie that `https://am.example.com/am/json` set, and a call: whether the call brings it (RFC 6265 §5.1,
    /// §5.4).
    struct Match: Sendable, CustomTestStringConvertible {
        let setCookie: String
        let url: String
        let path: String
        let isSent: Bool
        var testDescription: String { "\(setCookie) \(isSent ? "goes" : "does not go") to \(url)\(path)" }

        static let all = [
            Match(setCookie: "a=1; Path=/", url: "https://am.example.com", path: "/", isSent: true),
            Match(setCookie: "a=1; Path=/", url: "https://AM.example.com.:443", path: "/x", isSent: true),
            Match(setCookie: "a=1; Path=/", url: "https://am.example.com:8443", path: "/x", isSent: true),
            Match(setCookie: "a=1; Path=/", url: "http://am.example.com", path: "/x", isSent: true),
            Match(setCookie: "a=1; Path=/; Secure", url: "http://am.example.com", path: "/x", isSent: false),
            Match(setCookie: "a=1", url: "https://am.example.com", path: "/am", isSent: true),
            Match(setCookie: "a=1", url: "https://am.example.com", path: "/amber", isSent: false),
            Match(setCookie: "a=1", url: "https://am.example.com", path: "/", isSent: false),
            Match(setCookie: "a=1; Path=/am/json", url: "https://am.example.com", path: "/am/json/x", isSent: true),
            Match(setCookie: "a=1; Path=/am/json", url: "https://am.example.com", path: "/am/JSON", isSent: false),
            Match(setCookie: "a=1; Path=/", url: "https://xam.example.com", path: "/", isSent: false),
            Match(setCookie: "a=1; Path=/", url: "https://x.am.example.com", path: "/", isSent: false),
            Match(setCookie: "a=1; Path=/", url: "https://example.com", path: "/", isSent: false),
            // The vendor's SDK sends a cookie with a dot in front to any host of its length.
            Match(
                setCookie: "a=1; Path=/; Domain=.am.example.com", url: "https://zz.zzzzzzz.zzz", path: "/",
                isSent: false),
            // Without a list of public suffixes a Domain widens nothing: not to the host's own subdomains,
            Match(
                setCookie: "a=1; Path=/; Domain=am.example.com", url: "https://am.example.com", path: "/", isSent: true),
            Match(
                setCookie: "a=1; Path=/; Domain=am.example.com", url: "https://x.am.example.com", path: "/",
                isSent: false),
            // not to its siblings, as a load balancer's cookie would,
            Match(
                setCookie: "a=1; Path=/; Domain=.example.com", url: "https://am.example.com", path: "/", isSent: true),
            Match(
                setCookie: "a=1; Path=/; Domain=.example.com", url: "https://ig.example.com", path: "/", isSent: false),
            Match(setCookie: "a=1; Path=/; Domain=com", url: "https://evil.com", path: "/", isSent: false),
            // and what another host would set is refused.
            Match(
                setCookie: "a=1; Path=/; Domain=ig.example.com", url: "https://ig.example.com", path: "/", isSent: false
            ),
            Match(
                setCookie: "a=1; Path=/; Domain=ig.example.com", url: "https://am.example.com", path: "/", isSent: false
            ),
            Match(setCookie: "a=1; Path=/; Domain=ple.com", url: "https://am.example.com", path: "/", isSent: false),
        ]
    }

    @Test(
        "go where RFC 6265 sends them and where no Domain could mislead them, also after a restart",
        arguments: Match.all)
    func matching(_ match: Match) async throws {
        let origin = try Origin("https://am.example.com")
        let store = store()
        await store.store([match.setCookie + "; Max-Age=600"], from: origin, path: "/am/json")
        for place in [store, self.store()] {
            #expect(try await sent(place, match.url, path: match.path).isEmpty == !match.isSent)
        }
    }

    @Test("are there for the next process: those with a lifetime, and the load balancer's")
    func persistence() async throws {
        let origin = try Origin("https://am.example.com")
        let first = store()
        await first.store(
            ["lasting=1; Max-Age=600; Path=/x", "amlbcookie=01; Path=/; Secure", "session=2"], from: origin, path: "/")
        #expect(
            try await sent(first, "https://am.example.com", path: "/x") == ["lasting=1", "amlbcookie=01", "session=2"])
        let second = store()
        #expect(try await sent(second, "https://am.example.com", path: "/x") == ["lasting=1", "amlbcookie=01"])
        #expect(try await sent(second, "http://am.example.com", path: "/x") == ["lasting=1"])
        let none = SecureCookieStore(in: secrets, persisting: [], clock: clock)
        await none.store(["amlbcookie=02; Path=/; Secure"], from: origin, path: "/")
        #expect(try await sent(store(), "https://am.example.com", path: "/x") == ["lasting=1"])
        #expect(try await sent(none, "https://am.example.com") == ["amlbcookie=02"])
    }

    @Test("end with their time, by the injected clock, and when the server says so, on the disk too")
    func expiry() async throws {
        let origin = try Origin("https://am.example.com")
        await store().store(["a=1; Max-Age=60", "b=1; Max-Age=600", "amlbcookie=01"], from: origin, path: "/")
        clock.advance(by: 59)
        #expect(try await sent(store(), "https://am.example.com") == ["a=1", "b=1", "amlbcookie=01"])
        clock.advance(by: 1)
        #expect(try await sent(store(), "https://am.example.com") == ["b=1", "amlbcookie=01"])
        await store().store(
            ["b=; Expires=Thu, 01 Jan 1970 00:00:00 GMT", "amlbcookie=; Max-Age=0"], from: origin, path: "/")
        #expect(try await sent(store(), "https://am.example.com").isEmpty)
        #expect(await secrets.names().isEmpty)
    }

    @Test("are replaced by name, host and path, whether they last or not")
    func replacement() async throws {
        let origin = try Origin("https://am.example.com")
        let store = store()
        await store.store(["a=1; Max-Age=600", "a=2; Max-Age=600; Path=/x"], from: origin, path: "/")
        await store.store(["a=3"], from: origin, path: "/")
        #expect(try await sent(store, "https://am.example.com", path: "/x") == ["a=2", "a=3"])
        #expect(try await sent(self.store(), "https://am.example.com", path: "/x") == ["a=2"])
        await store.store(["a=4; Max-Age=600"], from: origin, path: "/")
        #expect(try await sent(self.store(), "https://am.example.com", path: "/") == ["a=4"])
        #expect(try await sent(store, "https://am.example.com", path: "/") == ["a=4"])
    }

    @Test("are not written anew when only their end moves a little")
    func quietRenewal() async throws {
        let origin = try Origin("https://am.example.com")
        let store = store()
        await store.store(["a=1; Max-Age=600"], from: origin, path: "/")
        clock.advance(by: 30)
        await store.store(["a=1; Max-Age=600"], from: origin, path: "/")
        #expect(try await secrets.value(SecureCookieStore.secretName)?.version == 1)
        clock.advance(by: 31)
        await store.store(["a=1; Max-Age=600"], from: origin, path: "/")
        #expect(try await secrets.value(SecureCookieStore.secretName)?.version == 2)
        clock.advance(by: 599)
        #expect(try await sent(self.store(), "https://am.example.com") == ["a=1"])
    }

    @Test("have limits: one cookie, one host, all of them, and the bytes of all")
    func limits() async throws {
        let origin = try Origin("https://am.example.com")
        let store = store()
        let large = String(repeating: "v", count: 4_095)
        let refused = await store.store(
            ["a=\(large); Max-Age=9", "b=\(large)v; Max-Age=9", "c=\u{1}; Max-Age=9", "=x", "d"], from: origin,
            path: "/")
        #expect(refused.map(\.code) == [.tooLarge, .malformed, .malformed, .malformed])
        #expect(try await sent(self.store(), "https://am.example.com") == ["a=\(large)"])
        for host in 0..<5 {
            let many = (0..<60).map { "c\($0)=1; Max-Age=9" }
            await store.store(many, from: try Origin("https://h\(host).example"), path: "/")
        }
        #expect(try await sent(self.store(), "https://h2.example").isEmpty)
        #expect(try await sent(self.store(), "https://h3.example").count == CookieStore.cookiesPerHost)
        #expect(try await sent(self.store(), "https://h4.example").count == CookieStore.cookiesPerHost)
        // Each of these needs twice its bytes in the record.
        let quotes = String(repeating: "\"", count: 4_000)
        for host in 0..<4 {
            let many = (0..<25).map { "c\($0)=\(quotes); Max-Age=9" }
            await store.store(many, from: try Origin("https://q\(host).example"), path: "/")
        }
        let record = try #require(try await secrets.value(SecureCookieStore.secretName))
        #expect(record.value.count <= 512 << 10)
        #expect(try await sent(self.store(), "https://q3.example").count == 25)
    }

    @Test("are sealed: neither names nor values are in any file")
    func sealed() async throws {
        let directory = try TemporaryDirectory()
        let origin = try Origin("https://am.example.com")
        let store = try await store(directory.open())
        await store.store(["sticky-name=sticky-value; Max-Age=600"], from: origin, path: "/")
        for file in try directory.files() {
            let bytes = try Data(contentsOf: file)
            #expect(bytes.range(of: Data("sticky".utf8)) == nil && bytes.range(of: Data("am.example".utf8)) == nil)
        }
        let next = try await self.store(directory.open())
        #expect(try await sent(next, "https://am.example.com") == ["sticky-name=sticky-value"])
    }

    @Test("of several processes at once are all kept")
    func concurrent() async throws {
        let directory = try TemporaryDirectory()
        let stores = [try await store(directory.open()), try await store(directory.open())]
        let origin = try Origin("https://am.example.com")
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<12 {
                group.addTask {
                    await stores[number % 2].store(
                        ["lasting\(number)=1; Max-Age=600", "passing\(number)=1"], from: origin, path: "/")
                }
            }
            try await group.waitForAll()
        }
        for store in stores {
            let names = Set(try await sent(store, "https://am.example.com"))
            #expect(names.count { $0.hasPrefix("lasting") } == 12)
            #expect(names.count { $0.hasPrefix("passing") } == 6)
        }
        try await stores[0].removeAll()
        #expect(try await sent(stores[1], "https://am.example.com").allSatisfy { $0.hasPrefix("passing") })
    }

    @Test(
        "that cannot be read stop no call, are not overwritten, and last as long as the process",
        arguments: [
            "", "no JSON", "{}", #"{"format":2,"cookies":[]}"#, #"{"format":1}"#, #"{"format":1,"cookies":[{}]}"#,
            #"{"format":1,"cookies":[{"name":"a","value":"1;evil","host":"am.example.com","path":"/","secure":true,"httpOnly":true,"expires":null}]}"#,
            #"{"format":1,"cookies":[{"name":"a","value":"1\r\nX: y","host":"am.example.com","path":"/","secure":true,"httpOnly":true,"expires":null}]}"#,
            #"{"format":1,"cookies":[{"name":"a","value":"1","host":"am.example.com","path":"/","secure":true,"httpOnly":true,"expires":9223372036854775807}]}"#,
        ])
    func damaged(_ record: String) async throws {
        try await secrets.update(SecureCookieStore.secretName, to: Secret(record), expected: .absent)
        let store = store()
        #expect(try await sent(store, "https://am.example.com").isEmpty)
        await store.store(["b=2; Max-Age=600"], from: try Origin("https://am.example.com"), path: "/")
        #expect(try await sent(store, "https://am.example.com") == ["b=2"])
        #expect(try await secrets.value(SecureCookieStore.secretName)?.value == Secret(record))
        try await store.removeAll()
        await store.store(["c=3; Max-Age=600"], from: try Origin("https://am.example.com"), path: "/")
        #expect(try await sent(self.store(), "https://am.example.com") == ["c=3"])
    }

    @Test("are not kept by a call that ends while everything is removed, or afterwards", arguments: [false, true])
    func removedMeanwhile(isAfter: Bool) async throws {
        let origin = try Origin("https://am.example.com")
        let interrupted = InterruptedStore(store: secrets, isAfter: isAfter)
        let store = store(interrupted)
        interrupted.interruption.withLock { $0 = { try await store.removeAll() } }
        await store.store(["who=ana; Max-Age=600", "passing=ana"], from: origin, path: "/", since: store.removals)
        #expect(try await sent(store, "https://am.example.com").isEmpty)
        #expect(await secrets.names().isEmpty)
        let before = store.removals
        try await store.removeAll()
        await store.store(["who=ana; Max-Age=600", "passing=ana"], from: origin, path: "/", since: before)
        #expect(try await sent(store, "https://am.example.com").isEmpty)
        await store.store(["who=bob; Max-Age=600"], from: origin, path: "/", since: store.removals)
        #expect(try await sent(store, "https://am.example.com") == ["who=bob"])
    }

    @Test("survive a full disk in memory, and say so when they cannot be removed")
    func fullDisk() async throws {
        let disk = SimulatedDisk()
        let origin = try Origin("https://am.example.com")
        let store = try await store(vault(on: disk))
        await store.store(["a=1; Max-Age=600"], from: origin, path: "/")
        disk.arm([.readOnly])
        await store.store(["b=2; Max-Age=600"], from: origin, path: "/")
        #expect(try await sent(store, "https://am.example.com") == ["a=1", "b=2"])
        #expect(await code { try await store.removeAll() } == .notPermitted)
        disk.arm([])
        await store.store(["c=3"], from: origin, path: "/")
        #expect(try await sent(self.store(vault(on: disk.copy())), "https://am.example.com") == ["a=1"])
        try await store.removeAll()
        #expect(try await sent(store, "https://am.example.com").isEmpty)
    }
}
