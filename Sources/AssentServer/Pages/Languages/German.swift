extension PageLanguage {
    /// German. The last lines are what nodes of journeys say when the operator's file says nothing.
    static let german: [String: String] = {
        var table: [String: String] = [
            "User Name": "Benutzername", "One Time Password": "Einmalcode", "Approve": "Freigeben",
            "Decline": "Ablehnen", "Yes": "Ja", "No": "Nein",
            "Confirm on your device.": "Bestätigen Sie auf Ihrem Gerät.",
        ]
        for text in PageText.allCases { table[text.rawValue] = german(text) }
        return table
    }()

    private static func german(_ text: PageText) -> String {
        switch text {
        case .signIn: "Anmelden"
        case .approveRequest: "Eine Anfrage freigeben"
        case .approveThis: "Diese Anfrage freigeben?"
        case .confirmIdentity: "Bestätigen Sie, dass Sie es sind"
        case .continueTo: "weiter zu {app}"
        case .continueButton: "Weiter"
        case .cancel: "Abbrechen"
        case .startAgain: "Neu beginnen"
        case .signOut: "Abmelden"
        case .error: "Fehler: {title}"
        case .userName: "Benutzername"
        case .password: "Passwort"
        case .answer: "Antwort"
        case .choose: "Wählen Sie"
        case .beginning: "Ein Dienst bittet um Ihre Freigabe. Sie sehen, worum es geht, bevor Sie entscheiden."
        case .askedBy: "Angefragt von {app}."
        case .terms: "Für das Konto {user}, bis {end}."
        default: germanConsent(text) ?? germanNotice(text) ?? germanMessage(text)
        }
    }

    private static func germanConsent(_ text: PageText) -> String? {
        switch text {
        case .allowTitle: "{app} erlauben?"
        case .asksForAccess: "{app} bittet um Zugriff auf Ihr Konto {user}."
        case .itMay: "Erlaubt wird"
        case .until: "Bis"
        case .untilDate: "{end}, wenn Sie es nicht vorher zurücknehmen"
        case .answerGoesTo: "Die Antwort geht an"
        case .appOnDevice: "eine App auf diesem Gerät ({scheme})"
        case .allow: "Erlauben"
        case .deny: "Nicht erlauben"
        case .scopeOpenID: "Wissen, dass Sie es sind"
        case .scopeProfile: "Ihren Namen und Ihr Profil sehen"
        case .scopeEmail: "Ihre E-Mail-Adresse sehen"
        case .scopePhone: "Ihre Telefonnummer sehen"
        case .scopeAddress: "Ihre Anschrift sehen"
        case .scopeOffline: "Den Zugriff behalten, nachdem Sie sich abgemeldet haben"
        case .signOutTitle: "Abmelden?"
        case .signOutText: "Sie sind als {user} angemeldet."
        case .staySignedIn: "Angemeldet bleiben"
        case .linkTitle: "Diesen Browser anmelden?"
        case .linkText: "Dieser Browser wird als {user} angemeldet und geht weiter zu {place}."
        case .linkReplaces: "In diesem Browser ist schon {user} angemeldet. Das endet hier, wenn Sie fortfahren."
        case .linkReplacesSomebody:
            "In diesem Browser ist schon jemand angemeldet. Das endet hier, wenn Sie fortfahren."
        case .linkOnlyIfYou:
            "Fahren Sie nur fort, wenn Sie das sind und gerade aus Ihrer App kommen. Hat Ihnen jemand diesen Link geschickt, schließen Sie die Seite."
        case .goingBack: "Zurück"
        case .ledBack: "Sie werden dorthin zurückgeleitet, woher Sie gekommen sind."
        case .welcome:
            "Dieser Server meldet Sie an und fragt Sie, bevor etwas in Ihrem Namen getan wird. Apps leiten Sie hierher, wenn sie das brauchen."
        default: nil
        }
    }

    private static func germanNotice(_ text: PageText) -> String? {
        switch text {
        case .notAccepted: "Das wurde nicht angenommen. Bitte versuchen Sie es noch einmal."
        case .failed: "Das hat nicht geklappt. Bitte prüfen Sie Ihre Eingaben und versuchen Sie es noch einmal."
        case .inactive: "Dieses Konto ist nicht aktiv."
        case .tookTooLong: "Das hat zu lange gedauert. Bitte beginnen Sie von vorn."
        case .locked: "Dieses Konto ist vorübergehend gesperrt. Versuchen Sie es später noch einmal."
        case .differentUser: "Sie sind als jemand anderes angemeldet."
        case .answeredBefore: "Diese Seite hatten Sie schon beantwortet. Hier geht Ihre Anmeldung weiter."
        case .noLongerGood:
            "Diese Seite gilt nicht mehr, oder Ihr Browser behält keine Cookies von hier. Bitte beginnen Sie von vorn."
        default: nil
        }
    }

    private static func germanMessage(_ text: PageText) -> String {
        switch text {
        case .signedIn: "Sie sind angemeldet"
        case .signedOut: "Sie sind abgemeldet"
        case .closePage: "Sie können diese Seite schließen."
        case .approved: "Freigegeben"
        case .approvedText: "Gehen Sie zurück zur App: Sie kann jetzt tun, was Sie freigegeben haben."
        case .approvedUnsentText:
            "Es wurde noch nichts abgeschickt. Gehen Sie zurück zur App oder zur Seite, die Sie gefragt hat, und schicken Sie es noch einmal ab: Es wird einmal durchgelassen."
        case .backTo: "Zurück zu {place}"
        case .used: "Schon freigegeben"
        case .usedText:
            "Sie haben das freigegeben, und die App hat es abgeschickt. Gehen Sie zurück zur App, um zu sehen, was daraus wurde."
        case .notApproved: "Nicht freigegeben"
        case .declinedText:
            "Sie haben abgelehnt. Es wurde nichts getan. Gehen Sie zurück zur App, um es noch einmal zu versuchen."
        case .unansweredText:
            "Auf Ihrem Gerät wurde nicht rechtzeitig geantwortet. Es wurde nichts getan. Gehen Sie zurück zur App, um es noch einmal zu versuchen."
        case .noDeviceText:
            "Sie haben kein Gerät, das dies freigeben kann. Es wurde nichts getan. Richten Sie ein Gerät ein, und gehen Sie dann zurück zur App, um es noch einmal zu versuchen."
        case .wrongAnswerText:
            "Eine Antwort hier oder auf Ihrem Gerät war falsch. Es wurde nichts getan. Gehen Sie zurück zur App, um es noch einmal zu versuchen."
        case .cannotApprove: "Diese Anfrage kann nicht freigegeben werden"
        case .cannotApproveText:
            "Sie wurde schon begonnen, sie ist abgelaufen, oder Sie sind hier nicht als der Benutzer angemeldet, von dem sie stammt. Gehen Sie zurück zur App und versuchen Sie es noch einmal."
        case .tooLong: "Das hat zu lange gedauert"
        case .tooLongText: "Bitte beginnen Sie von vorn."
        case .notSignedIn: "Nicht angemeldet"
        case .notHere: "Das geht hier nicht"
        case .notHereText: "Diese Art der Anmeldung gibt es nicht."
        case .notAvailable: "Nicht verfügbar"
        case .notAvailableText: "Der Server kann gerade nicht antworten. Bitte versuchen Sie es gleich noch einmal."
        case .outcomeUnknownText:
            "Es ist nicht bekannt, ob das geschehen ist. Bitte sehen Sie nach, bevor Sie es wiederholen."
        case .doesNotWork: "Das geht nicht"
        default: germanRefusal(text)
        }
    }

    private static func germanRefusal(_ text: PageText) -> String {
        switch text {
        case .linkEnded: "Dieser Link gilt nicht mehr"
        case .linkEndedText:
            "Ein Link kann einmal benutzt werden, und eine Minute lang. Öffnen Sie ihn noch einmal aus der App."
        case .badLink: "Dieser Link geht nicht"
        case .badLinkText:
            "Die App, von der Sie kommen, bittet um etwas, das sie nicht haben darf, oder ihre Adresse ist hier nicht bekannt. Gehen Sie zurück zur App. Wer für sie zuständig ist, muss wissen: {reason}"
        case .outOfDate: "Diese Seite ist veraltet"
        case .outOfDateText:
            "Sie wurde schon beantwortet, oder der Link, der hierher führte, ist beschädigt. Bitte beginnen Sie von vorn."
        case .nothingHere: "Hier ist nichts"
        case .nothingHereText:
            "Die Adresse nennt einen Bereich (realm), den dieser Server nicht hat. Prüfen Sie sie, oder gehen Sie zurück zur App, von der Sie kommen."
        case .foreignTarget: "Dieser Link ist nicht gut"
        case .foreignTargetText:
            "Er würde Sie an einen Ort führen, der nicht zu diesem Server gehört. Gehen Sie zurück zur App, von der Sie kommen."
        case .foreignForm: "Dieses Formular ist nicht von uns"
        case .foreignFormText:
            "Es kam von einer anderen Website, oder Ihr Browser sagt nicht, woher es kam. Gehen Sie zurück zur App, von der Sie kommen."
        case .needsApp: "Dafür brauchen Sie eine App"
        case .needsAppText: "Diese Art der Anmeldung fragt nach etwas, das diese Seite nicht zeigen kann."
        default: text.rawValue
        }
    }
}
