import AssentCore
import AssentPeers
import AssentTesting
import Foundation
import Testing

@testable import AssentCLI

@Suite("The page on disk that leads a browser on")
struct OpeningPageTests {
    private let clock = ManualClock()

    private func page(in directory: TemporaryDirectory) throws -> OpeningPage {
        try OpeningPage(
            leadingTo: "https://am.bank.example/end",
            environment: ["XDG_RUNTIME_DIR": directory.url.path(percentEncoded: false)])
    }

    private func isThere(_ page: OpeningPage) -> Bool { FileManager.default.fileExists(atPath: page.path) }

    /// Moves the clock when the page's removal waits on it.
    private func pass(_ seconds: TimeInterval) async {
        while clock.sleeperCount == 0 { await Task.yield() }
        clock.advance(by: seconds)
    }

    /// What a disk notes when somebody reads the page.
    private func read(_ page: OpeningPage) {
        let later = timeval(tv_sec: Int(Date().timeIntervalSince1970) + 60, tv_usec: 0)
        let written = timeval(tv_sec: Int(Date().timeIntervalSince1970) - 60, tv_usec: 0)
        #expect(utimes(page.path, [later, written]) == 0)
    }

    /// What a disk notes while nobody has.
    private func write(_ page: OpeningPage) {
        let now = timeval(tv_sec: Int(Date().timeIntervalSince1970), tv_usec: 0)
        #expect(utimes(page.path, [now, now]) == 0)
    }

    @Test("It waits for a browser that has to start first, and goes when that has read it")
    func coldStart() async throws {
        let directory = try TemporaryDirectory()
        let page = try page(in: directory)
        write(page)
        async let isOpened = page.removeOnceRead(clock: clock)
        await pass(6)
        await pass(10)
        while clock.sleeperCount == 0 { await Task.yield() }
        #expect(isThere(page))
        read(page)
        await pass(1)
        let opened = await isOpened
        #expect(opened)
        #expect(!isThere(page))
    }

    @Test("A reader of the first seconds may be what looks for the kind of the file: it stays for five")
    func earlyReader() async throws {
        let directory = try TemporaryDirectory()
        let page = try page(in: directory)
        read(page)
        async let isOpened = page.removeOnceRead(clock: clock)
        await pass(4)
        while clock.sleeperCount == 0 { await Task.yield() }
        #expect(isThere(page))
        await pass(1)
        let opened = await isOpened
        #expect(opened)
        #expect(!isThere(page))
    }

    @Test("After thirty seconds it goes in any case")
    func bounded() async throws {
        let directory = try TemporaryDirectory()
        let page = try page(in: directory)
        write(page)
        async let isOpened = page.removeOnceRead(clock: clock)
        await pass(30)
        let opened = await isOpened
        #expect(opened)
        #expect(!isThere(page))
    }

    @Test("It is in the user's own runtime directory, unless others could put a page of theirs in its place there")
    func place() throws {
        let directory = try TemporaryDirectory()
        let runtime = directory.url.path(percentEncoded: false)
        let own = try page(in: directory)
        defer { own.remove() }
        #expect(own.path.hasPrefix(runtime))
        for mode in [0o777, 0o770] as [mode_t] {
            try #require(chmod(runtime, mode) == 0)
            let page = try page(in: directory)
            defer { page.remove() }
            #expect(isThere(page))
            #expect(!page.path.hasPrefix(runtime))
        }
    }

    @Test("Where no program could open it, the command hears so at once")
    func failed() async throws {
        let directory = try TemporaryDirectory()
        let page = try page(in: directory)
        page.openerStatus.withLock { $0 = 3 }
        let opened = await page.removeOnceRead(clock: clock)
        #expect(!opened)
        #expect(!isThere(page))
    }
}
