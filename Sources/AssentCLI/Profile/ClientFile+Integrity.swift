import AssentConfiguration
import AssentCore

extension ClientFile {
    /// What happens for each kind of finding, and whether the server is told: `integrity` in the file. A kind that is
    /// not named is reported.
    static func integrity(_ reader: SettingsReader<Void>) throws -> (IntegrityControls, tellsServer: Bool) {
        var controls = IntegrityControls()
        guard let read = reader.optionalMapping("integrity") else { return (controls, true) }
        let tellsServer = read.bool("tellsServer", default: true)
        controls.debugger = try control(read, .debugger)
        controls.preload = try control(read, .preload)
        controls.rooted = try control(read, .rooted)
        read.finish()
        return (controls, tellsServer)
    }

    private static func control(_ reader: SettingsReader<Void>, _ kind: IntegrityKind) throws -> IntegrityControl {
        guard let name = reader.optionalString(kind.rawValue) else { return .report }
        guard let control = IntegrityControl(rawValue: name) else {
            throw reader.issue(kind.rawValue, "must be refuse, report or off")
        }
        return control
    }

    /// The lines of the file.
    var integrityLines: [String] {
        guard integrity != IntegrityControls() || !tellsServer else { return [] }
        var members = IntegrityKind.allCases.map { "\($0.rawValue): \(ClientFile.quoted(integrity[$0].rawValue))" }
        if !tellsServer { members.append("tellsServer: false") }
        return ["integrity: {\(members.joined(separator: ", "))}"]
    }
}
