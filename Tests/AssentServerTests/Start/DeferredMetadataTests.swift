import InMemoryLogging
import Logging
import Testing

@testable import AssentServer

@Suite("Deferred metadata")
struct DeferredMetadataTests {
    @Test("What is logged has the metadata of the logger, of those made from it, and of the line")
    func everything() throws {
        let memory = InMemoryLogHandler()
        var base = Logger(label: "test") { _ in memory }
        base[metadataKey: "node"] = "1"
        let deferred = Logger(label: base.label) { [handler = base.handler] _ in DeferredMetadata(handler) }
        var request = deferred
        request[metadataKey: "request"] = "7"
        #expect(request[metadataKey: "request"] == "7")
        #expect(request[metadataKey: "node"] == "1")
        request.error("failed", metadata: ["error": "E"])
        deferred.error("another")
        #expect(memory.entries.map(\.metadata) == [["node": "1", "request": "7", "error": "E"], ["node": "1"]])
    }

    @Test("The level is that of the handler behind it")
    func level() {
        let memory = InMemoryLogHandler()
        var logger = Logger(label: "test") { _ in DeferredMetadata(memory) }
        logger.logLevel = .warning
        logger.info("not this")
        logger.warning("this")
        #expect(memory.entries.map(\.level) == [.warning])
    }
}
