import Assent
import Foundation

@testable import AssentCLI

extension ClientProfile {
    /// The profile of an app's installation in a home of its own, of a server that is not there.
    static func ofInstallation(
        in home: VaultCommandTests.Home, _ registration: ClientFile.Registration?
    ) -> ClientProfile {
        var file = ClientFile(
            server: "https://a.example/am", realm: "/alpha", cookieName: "session", clientID: "app",
            redirectURI: "http://127.0.0.1/callback", scopes: ["accounts"], journey: "Login", resources: [],
            authority: nil, pins: [])
        file.registration = registration
        let places = Places(environment: [
            "HOME": home.directory.path, "XDG_CONFIG_HOME": home.directory.appending(path: "c").path,
            "XDG_STATE_HOME": home.state.path,
        ])
        return ClientProfile(file: file, places: places, name: "default")
    }
}

extension VaultCommandTests.Home {
    /// What a profile of an installation here stores.
    var state: URL { directory.appending(path: "s") }
}
