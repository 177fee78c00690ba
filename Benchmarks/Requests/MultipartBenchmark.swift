import Assent
import AssentCore
import HTTPTypes

/// A form of 1,000 small parts, made into a call and read to its end, against the same bytes written by hand into one
/// array.
struct MultipartBenchmark: Benchmark {
    static let name = "multipart"
    static let summary = "a form of 1,000 parts against writing its bytes by hand"

    private let setting: BenchSetting

    init(_ setting: BenchSetting) { self.setting = setting }

    /// How many bytes a part has.
    private static let partBytes = 1 << 10

    @concurrent
    func run() async throws -> [Comparison] {
        let random = SystemRandom()
        let parts = (0..<1_000).map { index in
            MultipartPart(
                name: "part\(index)", data: random.bytes(Self.partBytes), fileName: "file \(index).bin",
                contentType: "image/png")
        }
        let request = ResourceRequest.post("https://api.bank.example/files", multipartData: parts)
        var comparison = Comparison(
            benchmark: Self.name, title: "a form of 1,000 parts / by hand, time", unit: "s", aim: .atMost(1.3))
        let (rounds, block) = (setting.rounds(15, quick: 3), setting.rounds(100, quick: 10))
        for round in 0...rounds {
            let byHand = try await Self.time(block) { HandMadeForm.bytes(of: parts, boundary: random.token()).count }
            let form = try await Self.time(block) {
                var count = 0
                if let body = try request.httpCall().body { for try await chunk in body { count += chunk.count } }
                return count
            }
            // The first round warms both up.
            guard round > 0 else { continue }
            comparison.add(subject: form, baseline: byHand, of: rounds)
        }
        return [comparison]
    }

    /// Seconds for one of `count`.
    private static func time(_ count: Int, _ body: () async throws -> Int) async throws -> Double {
        let clock = ContinuousClock()
        let start = clock.now
        for _ in 0..<count {
            guard try await body() > 1_000 * partBytes else { throw BenchFailure("a form is too short") }
        }
        return (clock.now - start).inSeconds / Double(count)
    }
}

/// What one writes by hand. Names and contents are trusted, as they are where one writes this.
private enum HandMadeForm {
    static func bytes(of parts: [MultipartPart], boundary: String) -> [UInt8] {
        var form: [UInt8] = []
        for part in parts {
            form += "--\(boundary)\r\nContent-Disposition: form-data; name=\"\(part.name)\"".utf8
            if let fileName = part.fileName { form += "; filename=\"\(fileName)\"".utf8 }
            if let type = part.contentType { form += "\r\nContent-Type: \(type)".utf8 }
            form += "\r\n\r\n".utf8
            if let content = part.content.inMemory { form += content }
            form += "\r\n".utf8
        }
        form += "--\(boundary)--\r\n".utf8
        return form
    }
}
