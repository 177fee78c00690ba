import AssentConfiguration
import AssentCore
import AssentSigningProtocol
import AssentTrust
import Foundation

/// What an operator writes, in YAML or JSON, to have it signed as a trust file: the same members with names for
/// people, days instead of seconds, and keys as files. Version and time are added when it is signed.
struct TrustDraft {
    private let members: JSONObject

    /// Reads a draft. Files that it names are found beside it.
    ///
    /// - Throws: `ConfigurationError` with the line of what is wrong, ``CommandFailure``.
    init(file: String) throws {
        let directory = URL(fileURLWithPath: file).deletingLastPathComponent()
        members = try ConfigurationFile.read(ConfigurationFile.text(of: file), file: file) { reader in
            func keys(_ name: String) throws -> JSONValue {
                .array(
                    try reader.strings(name).map {
                        try TrustKeyFile.publicKey(URL(fileURLWithPath: $0, relativeTo: directory).path).json
                    })
            }
            let controls = reader.mapping("controls")
            let members = JSONObject(omittingNil: [
                "aud": .string(reader.string("audience")), "exp": try Self.time(reader, "expires"),
                "keys": try keys("keys"),
                "hosts": .array(try reader.mappings("hosts").map { try Self.host($0.key, $0.value) }),
                "issuer": .string(reader.string("issuer")), "identity": .string(reader.string("identity")),
                "payload": reader.json("payload"), "config": try keys("config"),
                "controls": .object(
                    JSONObject(
                        ["debugger", "rooted", "preload"].map { .init(name: $0, value: .string(controls.string($0))) })),
                "source": .array(reader.strings("source").map(JSONValue.string)),
                "development": reader.bool("development", default: false) ? true : nil,
            ])
            controls.finish()
            return members
        }
    }

    /// The content of a version.
    ///
    /// - Throws: ``CommandFailure`` when a rule of the format is broken.
    func content(version: Int, at time: Int) throws -> TrustContent {
        var object = members
        object["v"] = 1
        object["version"] = .integer(version)
        object["iat"] = .integer(time)
        do throws(SigningProtocolError) {
            return try TrustContent(.object(object), at: "")
        } catch {
            throw CommandFailure(
                "That would be no trust file. \(error.detail.replacing("The message", with: "It"))",
                status: .configuration)
        }
    }

    private static func host(_ name: String, _ reader: SettingsReader<Void>) throws -> JSONValue {
        let pins = try reader.list("pins").map { pin in
            let text = pin.string("spki")
            let key: Pin
            do throws(PinError) {
                key = try Pin(text)
            } catch {
                throw pin.issue("spki", error.explanation)
            }
            let end = try time(pin, "notAfter")
            // Only now: a key that was not read yet would be refused as unknown, in the place of what is wrong.
            pin.finish()
            return JSONValue(omittingNil: ["spki": .string(Base64URL.encode(key.sha256)), "notAfter": end])
        }
        let sends = reader.strings("sends")
        reader.finish()
        return ["host": .string(name), "pins": .array(pins), "sends": .array(sends.map(JSONValue.string))]
    }

    /// A day, the start of which counts, or a time in UTC.
    private static func time(_ reader: SettingsReader<Void>, _ name: String) throws -> JSONValue? {
        guard let text = reader.optionalString(name) else { return nil }
        let date =
            (try? Date(text, strategy: .iso8601)) ?? (try? Date(text, strategy: .iso8601.year().month().day()))
        guard let date, date.timeIntervalSince1970 > 0 else {
            throw reader.issue(name, "must be a day such as 2027-06-30, or a time such as 2027-06-30T12:00:00Z")
        }
        return .integer(Int(date.timeIntervalSince1970))
    }
}
